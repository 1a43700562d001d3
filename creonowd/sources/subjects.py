"""What an author can ask about: people, notes, rules, threads and chapters, by what they are called.

Files with faults are among them, with what is wrong. Blocks its thread.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from typing import NamedTuple

from creonowd.context.fragment import Caution
from creonowd.context.language import CONSTRAINTS_FILE
from creonowd.context.names import unambiguous_parts
from creonowd.context.prompt_coverage import chapter_number, chapter_title
from creonowd.context.story import Story
from creonowd.errors import DaemonError, Wording
from creonowd.model import Model
from creonowd.sources.characters import Inject, note_heading, note_inject, note_names, read_entity
from creonowd.sources.file_fragments import TITLE_KEYS
from creonowd.sources.project_files import file_warnings
from creonowd.storage import front_matter
from creonowd.text import as_text, file_stem, join_lines, normal_form
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import MEMORY, CreonowFolder, FolderReader, Tree, TreeFile
from creonowd.workspace.file_edits import revision_of
from creonowd.workspace.projects import Project


class SubjectKind(StrEnum):
    """What an author can ask about."""

    PERSON = "person"
    """A card of `characters/`."""
    NOTE = "note"
    """A text of the settings."""
    RULE = "rule"
    """A constraint, or a text of the rules."""
    THREAD = "thread"
    """A thread of the plot."""
    CHAPTER = "chapter"
    """A document of the story."""
    PASSAGE = "passage"
    """A part of a document."""
    SUMMARY = "summary"
    """What the story so far says of chapters."""
    WORDS = "words"
    """Words of the author's own."""


class Subject(Model):
    """Something that an author can ask about.

    `names` are all that it is called by, its own name first. `problem` is what is wrong with its
    file, and `line` where.
    """

    kind: SubjectKind
    source_ref: str
    names: tuple[str, ...]
    inject: Inject | None = None
    revision: str = ""
    number: int | None = None
    problem: Wording | None = None
    line: int | None = None
    text: str = ""

    def is_called(self, name: str) -> bool:
        """Return whether this is one of its names, letters aside."""
        return any(plain(one) == name for one in self.names)


def plain(text: str) -> str:
    """Spell a text as names are compared."""
    return " ".join(normal_form("NFKC", text).casefold().split())


class _SubjectFault(NamedTuple):
    problem: Wording | None = None
    line: int | None = None


def subjects_of(
    tree: Tree, constraints: Constraints, project: Project, story: Story
) -> tuple[Subject, ...]:
    """Return all that an author can ask about in a project, people first, chapters last."""
    reads = FolderReader(tree, project)
    faults = _faults(file_warnings(tree, constraints, project))
    return (
        *_people(reads, faults),
        *_notes(reads, faults),
        *_constraints(constraints, project, faults),
        *_files(reads, CreonowFolder.RULES, SubjectKind.RULE, faults),
        *_files(reads, CreonowFolder.THREADS, SubjectKind.THREAD, faults),
        *_chapters(story),
    )


def _faults(warnings: Iterable[Caution]) -> dict[str, _SubjectFault]:
    faults: dict[str, _SubjectFault] = {}
    for warning in warnings:
        line = dict(warning.details).get("line")
        faults[warning.source_ref] = _SubjectFault(
            warning.wording, line if isinstance(line, int) else None
        )
    return faults


def _people(reads: FolderReader, faults: Mapping[str, _SubjectFault]) -> Iterator[Subject]:
    cards: dict[str, tuple[tuple[str, ...], Inject | None]] = {}
    folder = reads.folder(CreonowFolder.CHARACTERS)
    for file in folder.files:
        try:
            entity = read_entity(file.path, as_text(file.data) or "")
            cards[file.path] = (entity.names, entity.inject)
        except (ValueError, RecursionError):
            cards[file.path] = (_names(file), None)
    parts = unambiguous_parts({path: names for path, (names, _) in cards.items()}).own
    for file in folder.files:
        names, inject = cards[file.path]
        names = (*names, *parts.get(file.path, ()))
        yield _subject(SubjectKind.PERSON, file, names, inject, faults)
    yield from _unreadable(reads, CreonowFolder.CHARACTERS, SubjectKind.PERSON, faults)


def _notes(reads: FolderReader, faults: Mapping[str, _SubjectFault]) -> Iterator[Subject]:
    for file in reads.folder(CreonowFolder.SETTINGS).files:
        names, inject = _names(file), None
        if file.path != MEMORY:
            text = as_text(file.data) or ""
            with suppress(ValueError, RecursionError):
                inject = note_inject(file.path, text)
                heading = note_heading(file.path, text) if len(names) == 1 else []
                every = (*heading, *names, *note_names(file.path, text))
                names = tuple(dict.fromkeys(every))
        yield _subject(SubjectKind.NOTE, file, names, inject, faults)
    yield from _unreadable(reads, CreonowFolder.SETTINGS, SubjectKind.NOTE, faults)


def _files(
    reads: FolderReader,
    scope: CreonowFolder,
    kind: SubjectKind,
    faults: Mapping[str, _SubjectFault],
) -> Iterator[Subject]:
    for file in reads.folder(scope).files:
        if file.path != CONSTRAINTS_FILE:
            yield _subject(kind, file, _names(file), None, faults)
    yield from _unreadable(reads, scope, kind, faults)


def _constraints(
    constraints: Constraints, project: Project, faults: Mapping[str, _SubjectFault]
) -> Iterator[Subject]:
    try:
        items = constraints.read_now(project.root).constraints
    except DaemonError:
        fault = faults.get(CONSTRAINTS_FILE, _SubjectFault())
        yield Subject(
            kind=SubjectKind.RULE,
            source_ref=CONSTRAINTS_FILE,
            names=(file_stem(CONSTRAINTS_FILE),),
            problem=fault.problem,
            line=fault.line,
        )
        return
    for one in items:
        text = join_lines(one.text)
        ref = f"{CONSTRAINTS_FILE}#{one.id}"
        yield Subject(kind=SubjectKind.RULE, source_ref=ref, names=(text,), text=text)


def _chapters(story: Story) -> Iterator[Subject]:
    for place, document in enumerate(story.documents):
        yield Subject(
            kind=SubjectKind.CHAPTER,
            source_ref=document.path,
            names=tuple(dict.fromkeys((chapter_title(document), file_stem(document.path)))),
            number=chapter_number(document, place),
        )


def _subject(
    kind: SubjectKind,
    file: TreeFile,
    names: tuple[str, ...],
    inject: Inject | None,
    faults: Mapping[str, _SubjectFault],
) -> Subject:
    fault = faults.get(file.path, _SubjectFault())
    return Subject(
        kind=kind,
        source_ref=file.path,
        names=names,
        inject=inject,
        revision=revision_of(file.data),
        problem=fault.problem,
        line=fault.line,
        text=as_text(file.data) or "",
    )


def _names(file: TreeFile) -> tuple[str, ...]:
    """Return what a file calls itself, and its own name."""
    stem = file_stem(file.path)
    values = front_matter.split(as_text(file.data) or "").values
    named = next((values[key] for key in TITLE_KEYS if key in values), None)
    title = join_lines(named).strip() if isinstance(named, str) else ""
    return (title, stem) if title and title != stem else (stem,)


def _unreadable(
    reads: FolderReader,
    scope: CreonowFolder,
    kind: SubjectKind,
    faults: Mapping[str, _SubjectFault],
) -> Iterator[Subject]:
    for problem in reads.folder(scope).problems:
        yield Subject(
            kind=kind,
            source_ref=problem.path,
            names=(file_stem(problem.path),),
            problem=faults.get(problem.path, _SubjectFault(problem.error.wording)).problem,
        )
