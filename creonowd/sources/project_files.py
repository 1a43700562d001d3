"""The sources that every project has: the files of its `.creonow` tree and its constraints.

A thread of the plot is one file of `threads/`, whose front matter says where it was `planted`,
where it is `due`, its `status` and, once it is resolved, where (`resolved`).

What was made of files is kept until their bytes change.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Any, NamedTuple, cast

from creonowd.context.fragment import (
    Caution,
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    Omission,
    Place,
    Reason,
    Rule,
    caution,
)
from creonowd.context.language import CONSTRAINTS_FILE
from creonowd.context.numerals import chapter_of
from creonowd.context.plan import Need
from creonowd.context.source import PendingResult, Source, SourceQuery, SourceResult
from creonowd.context.story import Story, at_place, bounds
from creonowd.errors import WARNINGS, DaemonError, ErrorCode, WarningCode, Wording
from creonowd.memo import Memo
from creonowd.sources.characters import (
    EntityCache,
    Inject,
    MentionedSource,
    ProjectEntities,
    characters,
    header_values,
    note_inject,
    note_names,
)
from creonowd.sources.file_fragments import (
    NO_PLACE,
    FileFaultError,
    FileKind,
    file_caution,
    is_json_path,
    is_share,
    read_files,
)
from creonowd.sources.passage_source import PassageSearch, PassageSource
from creonowd.sources.synopsis import ChapterSummaries, EarlierMentions, SynopsisSource
from creonowd.storage import front_matter
from creonowd.text import as_text, canonical_json, load_json
from creonowd.threads import SharedReads
from creonowd.workspace.constraints import Constraint, Constraints
from creonowd.workspace.creonow_tree import (
    DEFAULTS,
    MEMORY,
    TERMINOLOGY_FILE,
    CreonowFolder,
    Folder,
    FolderReader,
    ProjectRead,
    ReadPlace,
    Tree,
    TreeFile,
    folder_of,
    is_outline,
)
from creonowd.workspace.projects import Project

STYLE = f"{folder_of(CreonowFolder.RULES)}/style.md"
SETTINGS = folder_of(CreonowFolder.SETTINGS)
MEMORY_VERSION = 1

# The bytes of the folders with them.
KEPT_WEIGHT = 32_000_000

# Where each stands within its layer; characters and hosts come after the rules.
GUIDE_GROUP, RULES_GROUP, CONSTRAINT_GROUP = 0, 1, 2
PREFERENCE_GROUP = 1

_GUIDES = frozenset({STYLE, TERMINOLOGY_FILE})
_UNEDITED = {
    STYLE: DEFAULTS["rules/style.md"].decode().strip(),
    TERMINOLOGY_FILE: canonical_json(DEFAULTS["rules/terminology.json"].decode()),
}
_ORIGINS = {"user": ConstraintOrigin.USER, "kg": ConstraintOrigin.KG}


class ProjectSources:
    """Makes the sources of any project, and keeps what was made of which files."""

    def __init__(
        self,
        tree: Tree,
        constraints: Constraints,
        passages: PassageSearch,
        summaries: ChapterSummaries | None = None,
    ) -> None:
        self._summaries = summaries
        self._tree = tree
        self._constraints = constraints
        self.passages = passages
        self._made: Memo[object, SourceResult] = Memo(KEPT_WEIGHT, _weigh)
        self._reads: SharedReads[Any] = SharedReads()
        self._entities = EntityCache()

    def of(self, project: Project) -> list[Source]:
        """Return the sources of a project for one assembly."""
        place = ReadPlace(self._tree, project, self._reads)
        entities = ProjectEntities(place, self._entities)
        return [
            *(_FolderSource(row, place, self._made) for row in FILES),
            _ConstraintFileSource(self._constraints, place, self._made),
            *self._synopsis(place, entities),
            MentionedSource(entities),
            PassageSource(self.passages, project, entities),
        ]

    def _synopsis(self, place: ReadPlace, entities: ProjectEntities) -> Sequence[Source]:
        if self._summaries is None:
            return ()
        return (
            SynopsisSource(self._summaries, place, entities),
            EarlierMentions(place.project, self._summaries, entities),
        )

    def entities(self, project: Project) -> ProjectEntities:
        """Return the entities of a project, to be read when they are asked for."""
        return ProjectEntities(ReadPlace(self._tree, project, self._reads), self._entities)


def _weigh(key: object, fetched: SourceResult) -> int:
    """Weigh also the folders in a key: of files that cannot be used nothing else is kept."""
    parts = cast("tuple[object, ...]", key) if isinstance(key, tuple) else ()
    return fetched.weight + sum(part.weight for part in parts if isinstance(part, Folder))


class _FileSource(ProjectRead[SourceResult], Source):
    """A source whose answer to every query is one read of the project's files."""

    def __init__(self, place: ReadPlace, made: Memo[object, SourceResult]) -> None:
        super().__init__(place)
        self._made = made

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return fragments of the files, which may have been read ahead."""
        del ask
        return self.peek() or self.get()


class _FolderSource(_FileSource):
    """Fragments of the files of one folder that one need asks for."""

    def __init__(self, row: "_Row", place: ReadPlace, made: Memo[object, SourceResult]) -> None:
        super().__init__(place, made)
        self.layer, self.name, self.need = row.layer, row.name, row.need
        self.unavailable = row.unavailable
        self._row = row

    def read(self, folders: FolderReader) -> SourceResult:
        """Make fragments of the files, unless they are as they were."""
        row, folder = self._row, folders.folder(self._row.folder)
        if not row.with_outlines:
            return self._made.get((row.name, folder), partial(row.read, folder))
        top = folders.outlines()
        return self._made.get((row.name, folder, top), lambda: row.read(join_folders(top, folder)))


def join_folders(*folders: Folder) -> Folder:
    """Return the files and problems of several folders."""
    return Folder(
        files=tuple(file for folder in folders for file in folder.files),
        problems=tuple(problem for folder in folders for problem in folder.problems),
    )


def _constraints_unavailable(why: Wording) -> Caution:
    general = WARNINGS[WarningCode.CONSTRAINTS_UNAVAILABLE]
    return Caution(
        code=WarningCode.CONSTRAINTS_UNAVAILABLE,
        wording=Wording(f"{general.english} {why.english}", f"{general.chinese}{why.chinese}"),
        source_ref=CONSTRAINTS_FILE,
    )


class _ConstraintFileSource(_FileSource):
    """The constraints; evidence lists a file that cannot be read."""

    layer = Layer.RULES
    name = "constraints"
    need = Need.ALWAYS
    unavailable = _constraints_unavailable(
        Wording(
            f"{CONSTRAINTS_FILE} took too long or failed.", f"{CONSTRAINTS_FILE} 读取超时或出错。"
        )
    )

    def __init__(
        self, constraints: Constraints, place: ReadPlace, made: Memo[object, SourceResult]
    ) -> None:
        super().__init__(place, made)
        self._constraints = constraints

    def read(self, folders: FolderReader) -> SourceResult:
        """Make fragments of the constraints, unless their file is as it was."""
        try:
            file = self._constraints.read_now(folders.root)
        except DaemonError as error:
            folders.has_problems = True
            left_out = Omission(
                layer=Layer.RULES,
                source=self.name,
                source_ref=CONSTRAINTS_FILE,
                reason=Reason.READ_ERROR
                if error.code is ErrorCode.IO_ERROR
                else Reason.INVALID_FORMAT,
                place=Place(CONSTRAINT_GROUP),
            )
            warning = _constraints_unavailable(error.wording)
            return SourceResult(left_out=(left_out,), warnings=(warning,))
        return self._made.get((self.name, file.data), partial(_constraints, file.constraints))


def _constraints(constraints: Sequence[Constraint]) -> SourceResult:
    return SourceResult(
        fragments=tuple(
            Fragment(
                layer=Layer.RULES,
                source=_ConstraintFileSource.name,
                source_ref=f"{CONSTRAINTS_FILE}#{constraint.id}",
                text=constraint.text,
                kind=FragmentKind.CONSTRAINT,
                origin=_ORIGINS[constraint.source],
                degradable=constraint.degradable,
                priority=constraint.priority,
                place=Place(CONSTRAINT_GROUP, "", index),
                since=constraint.since or "",
                until=constraint.until or "",
            )
            for index, constraint in enumerate(constraints)
        )
    )


def style_guide(folder: Folder) -> SourceResult:
    """Read style and terminology."""
    return read_files(_rules_kind(GUIDE_GROUP), folder, _GUIDES.__contains__, _rule_fields)


def other_rules(folder: Folder) -> SourceResult:
    """Read every other file of `rules/`; constraints have a source of their own."""
    elsewhere = {*_GUIDES, CONSTRAINTS_FILE}
    kind = _rules_kind(RULES_GROUP)
    return read_files(kind, folder, lambda path: path not in elsewhere, _rule_fields)


def _rules_kind(group: int) -> FileKind:
    return FileKind(
        layer=Layer.RULES,
        source="rules",
        unavailable=WarningCode.RULES_UNAVAILABLE,
        group=group,
    )


def _rule_fields(path: str, text: str) -> dict[str, Any] | None:
    if path == TERMINOLOGY_FILE:
        _check_terminology(json.loads(text))
    return None if text.strip() == _UNEDITED.get(path) else {}


def _check_terminology(value: Any) -> None:
    """Fail unless `terms` and `banned`, where they are there, are what the judge can read."""
    if not isinstance(value, dict):
        raise FileFaultError(_TERMINOLOGY)
    fields = cast("dict[str, Any]", value)
    terms, banned = fields.get("terms", []), fields.get("banned", [])
    entries = cast("list[Any]", terms) if isinstance(terms, list) else [None]
    if not all(isinstance(entry, (dict, str)) for entry in entries):
        raise FileFaultError(_TERMS, near='"terms"')
    words = cast("list[Any]", banned) if isinstance(banned, list) else [banned]
    if not all(isinstance(word, str) for word in words):
        raise FileFaultError(_BANNED, near='"banned"')


_TERMINOLOGY = Wording(
    'it must be an object with `terms`, such as {"terms": [{"term": "…", "avoid": ["…"]}]}',
    '须为带 terms 的对象，例如 {"terms": [{"term": "…", "avoid": ["…"]}]}',
)
_TERMS = Wording(
    "`terms` must be a list of objects with `term` and `avoid`",
    "terms 须为列表，各项为带 term 与 avoid 的对象",
)
_BANNED = Wording("`banned` must be a list of words", "banned 须为词语列表")


def settings_texts(folder: Folder) -> SourceResult:
    """Read every settings text but the memory and the outline."""
    kind = FileKind(
        layer=Layer.SETTINGS,
        source="settings",
        unavailable=WarningCode.SETTINGS_UNAVAILABLE,
        timed=True,
    )
    outlines = _outlines_in(folder)
    return read_files(
        kind, folder, lambda path: path != MEMORY and path not in outlines, _note_fields
    )


def outline_files(folder: Folder) -> SourceResult:
    """Read the outlines among the settings and at the top of the project."""
    kind = FileKind(
        layer=Layer.SETTINGS,
        source="outline",
        unavailable=WarningCode.OUTLINE_UNAVAILABLE,
        timed=True,
    )
    return read_files(kind, folder, _outlines_in(folder).__contains__, _note_fields)


def _outlines_in(folder: Folder) -> frozenset[str]:
    texts = ((file.path, as_text(file.data) or "") for file in folder.files)
    unread = ((problem.path, "") for problem in folder.problems)
    return frozenset(path for path, text in (*texts, *unread) if is_outline(path, text))


def _note_fields(path: str, text: str) -> dict[str, Any] | None:
    """Return the fields of a note that is always injected; what waits to be mentioned is checked.

    An outline at the top of the project is a document and always injected.
    """
    fields = _confidence(path, text)
    if not path.startswith(f"{SETTINGS}/"):
        return fields
    inject = note_inject(path, text)
    if inject in {Inject.MENTIONED, Inject.MANUAL}:
        note_names(path, text)
    return fields if inject is Inject.ALWAYS else None


def _confidence(path: str, text: str) -> dict[str, Any]:
    """Return the confidence that a settings text claims, in front matter or in a key."""
    if is_json_path(path):
        value = json.loads(text)
        values = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    else:
        read = front_matter.read(text)
        values = {} if read is None else read.values
    confidence = values.get("confidence")
    if confidence is None:
        return {}
    if not is_share(confidence):
        raise FileFaultError(_CONFIDENCE, near="confidence")
    return {"confidence": float(confidence)}


_CONFIDENCE = Wording(
    "`confidence` must be a number from 0 to 1", "confidence 须为 0 到 1 之间的数"
)


def preferences(folder: Folder) -> SourceResult:
    """Read the rules of the memory file; one that makes no sense costs itself, not the others."""
    if any(problem.path == MEMORY for problem in folder.problems):
        return _memory([_lost_memory(MEMORY, Reason.READ_ERROR)])
    file = next((file for file in folder.files if file.path == MEMORY), None)
    if file is None:
        return SourceResult()
    rules = _memory_rules(file)
    if rules is None:
        return _memory([_lost_memory(MEMORY, Reason.INVALID_FORMAT)])
    return _memory([_preference(index, rule) for index, rule in enumerate(rules)])


def _memory(items: Sequence[Fragment | Omission]) -> SourceResult:
    left_out = tuple(item for item in items if isinstance(item, Omission))
    return SourceResult(
        fragments=tuple(item for item in items if isinstance(item, Fragment)),
        left_out=left_out,
        warnings=(_memory_unavailable(left_out[0].source_ref),) if left_out else (),
    )


def _memory_unavailable(ref: str) -> Caution:
    return file_caution(WarningCode.MEMORY_UNAVAILABLE, ref, _MEMORY)


_MEMORY = Wording(
    'it is not of the form {"version": 1, "rules": [{"text": "…", "confidence": 0.9}]}',
    '格式须为 {"version": 1, "rules": [{"text": "…", "confidence": 0.9}]}',
)


def _memory_rules(file: TreeFile) -> list[Any] | None:
    try:
        value = load_json(as_text(file.data) or "")
    except ValueError:
        return None
    memory = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    rules = memory.get("rules")
    if memory.get("version") != MEMORY_VERSION or not isinstance(rules, list):
        return None
    return cast("list[Any]", rules)


def _preference(index: int, rule: Any) -> Fragment | Omission:
    values = cast("dict[str, Any]", rule) if isinstance(rule, dict) else {}
    own_id = values.get("id")
    ref = f"{MEMORY}#{own_id if isinstance(own_id, str) and own_id else index + 1}"
    text, confidence = values.get("text"), values.get("confidence", 1.0)
    if not isinstance(text, str) or not text.strip() or not is_share(confidence):
        return _lost_memory(ref, Reason.INVALID_FORMAT)
    try:
        span = bounds(values)
    except ValueError:
        return _lost_memory(ref, Reason.INVALID_FORMAT)
    return Fragment(
        layer=Layer.SETTINGS,
        source="memory",
        source_ref=ref,
        text=text,
        confidence=float(confidence),
        place=Place(PREFERENCE_GROUP, MEMORY, index),
        since=span.since,
        until=span.until,
    )


def _lost_memory(ref: str, reason: Reason) -> Omission:
    return Omission(layer=Layer.SETTINGS, source="memory", source_ref=ref, reason=reason)


THREAD_GROUP = 2

_OPEN_WORDS = frozenset({"open", "未收", "未回收", "进行中"})
_CLOSED_WORDS = frozenset(
    {"resolved", "closed", "done", "dropped", "已收", "已回收", "回收", "已完成", "放弃", "废弃"}
)
_THREAD_STATUS = Wording(
    "`status` must be open, resolved or dropped", "status 须为 未收、已收 或 放弃"
)
_THREAD_NAMES = Wording("`names` must be texts", "names 须为文本")


class ThreadState(StrEnum):
    """How a thread stands at a place; `due` in the very document in which it is to be resolved."""

    NOT_YET = "not_yet"
    """It is planted later."""
    OPEN = "open"
    """It is planted and not resolved."""
    DUE = "due"
    """It is to be resolved in this very document."""
    OVERDUE = "overdue"
    """It should have been resolved before."""
    RESOLVED = "resolved"
    """It is resolved."""


OPEN_STATES = frozenset({ThreadState.OPEN, ThreadState.DUE, ThreadState.OVERDUE})


def plot_threads(folder: Folder) -> SourceResult:
    """Read every thread; one that is resolved holds until where that happened."""
    kind = FileKind(
        layer=Layer.SETTINGS,
        source="threads",
        unavailable=WarningCode.THREADS_UNAVAILABLE,
        group=THREAD_GROUP,
    )
    return read_files(kind, folder, lambda _path: True, _thread_fields)


def _thread_fields(_path: str, text: str) -> dict[str, Any]:
    values = header_values(text)
    status = values.get("status", "open")
    if not isinstance(status, str) or status.strip().casefold() not in _OPEN_WORDS | _CLOSED_WORDS:
        raise FileFaultError(_THREAD_STATUS, near="status")
    names: Any = values.get("names", [])
    listed = cast("list[Any]", names) if isinstance(names, list) else [names]
    if not all(isinstance(name, str) for name in listed):
        raise FileFaultError(_THREAD_NAMES, near="names")
    try:
        span = bounds({"from": values.get("planted"), "until": values.get("resolved")})
        due = bounds({"from": values.get("due")}).since
    except ValueError:
        raise FileFaultError(NO_PLACE) from None
    closed = status.strip().casefold() in _CLOSED_WORDS
    return {
        "kind": FragmentKind.THREAD,
        "names": tuple(cast("list[str]", listed)),
        "since": span.since,
        "until": span.until if closed else "",
        "due": due,
        "excluded": Rule.NO_LONGER if closed and not span.until else None,
    }


def thread_state(thread: Fragment, story: Story, document: int) -> ThreadState:
    """Return how a thread stands in a document of the story, by its number."""
    if thread.excluded is not None:
        return ThreadState.RESOLVED
    if thread.since and story.find(thread.since).place.document > document:
        return ThreadState.NOT_YET
    if thread.until and story.find(thread.until).place.document <= document:
        return ThreadState.RESOLVED
    found = story.find(thread.due) if thread.due else None
    if found is None or not found.known or found.place.document > document:
        return ThreadState.OPEN
    return ThreadState.DUE if found.place.document == document else ThreadState.OVERDUE


class _Row(NamedTuple):
    """A source of fragments of one folder, and with `with_outlines` of the outlines beside it."""

    name: str
    layer: Layer
    folder: CreonowFolder
    need: Need
    unavailable: Caution
    read: Callable[[Folder], SourceResult]
    with_outlines: bool = False


FILES = (
    _Row(
        "style",
        Layer.RULES,
        CreonowFolder.RULES,
        Need.STYLE_GUIDE,
        caution(WarningCode.RULES_UNAVAILABLE),
        style_guide,
    ),
    _Row(
        "rules",
        Layer.RULES,
        CreonowFolder.RULES,
        Need.ALWAYS,
        caution(WarningCode.RULES_UNAVAILABLE),
        other_rules,
    ),
    _Row(
        "characters",
        Layer.RULES,
        CreonowFolder.CHARACTERS,
        Need.CHARACTERS,
        caution(WarningCode.CHARACTERS_UNAVAILABLE),
        characters,
    ),
    _Row(
        "settings",
        Layer.SETTINGS,
        CreonowFolder.SETTINGS,
        Need.CHARACTERS,
        caution(WarningCode.SETTINGS_UNAVAILABLE),
        settings_texts,
    ),
    _Row(
        "outline",
        Layer.SETTINGS,
        CreonowFolder.SETTINGS,
        Need.OUTLINE,
        caution(WarningCode.OUTLINE_UNAVAILABLE),
        outline_files,
        with_outlines=True,
    ),
    _Row(
        "threads",
        Layer.SETTINGS,
        CreonowFolder.THREADS,
        Need.OUTLINE,
        caution(WarningCode.THREADS_UNAVAILABLE),
        plot_threads,
    ),
    _Row(
        "memory",
        Layer.SETTINGS,
        CreonowFolder.SETTINGS,
        Need.USER_PREFERENCES,
        caution(WarningCode.MEMORY_UNAVAILABLE),
        preferences,
    ),
)


def file_warnings(tree: Tree, constraints: Constraints, project: Project) -> list[Caution]:
    """Return the warnings that an assembly would give for the files of a project; blocks."""
    reads = FolderReader(tree, project)
    found = [warning for row in FILES for warning in row.read(reads.folder(row.folder)).warnings]
    found += outline_files(reads.outlines()).warnings
    try:
        constraints.read_now(project.root)
    except DaemonError as error:
        code = WarningCode.CONSTRAINTS_UNAVAILABLE
        found.append(Caution(code=code, wording=error.wording, source_ref=CONSTRAINTS_FILE))
    return list({warning.source_ref: warning for warning in found}.values())


def place_warnings(
    tree: Tree, constraints: Constraints, project: Project, story: Story
) -> list[Caution]:
    """Return what is unclear about where in the story the files of a project hold; blocks."""
    found = every_fragment(tree, constraints, project)
    return list(at_place(tuple(found), story, None).warnings)


def every_fragment(tree: Tree, constraints: Constraints, project: Project) -> list[Fragment]:
    """Return what the files of a project offer to any assembly; blocks."""
    reads = FolderReader(tree, project)
    found = [one for row in FILES for one in row.read(reads.folder(row.folder)).fragments]
    found += outline_files(reads.outlines()).fragments
    with suppress(DaemonError):
        found += _constraints(constraints.read_now(project.root).constraints).fragments
    entities = EntityCache().entities(
        reads.folder(CreonowFolder.CHARACTERS), reads.folder(CreonowFolder.SETTINGS)
    )
    return [*found, *entities.mentioned, *entities.manual]


def outline_for(tree: Tree, project: Project, name: str) -> str:
    """Return what the outlines of a project say of one chapter, by its number; blocks."""
    reads = FolderReader(tree, project)
    counted = chapter_of(name)
    if counted is None:
        return ""
    folder = join_folders(reads.outlines(), reads.folder(CreonowFolder.SETTINGS))
    texts = (fragment.text for fragment in outline_files(folder).fragments)
    return "\n".join(filter(None, (_section_of(text, counted.value) for text in texts)))


def _section_of(text: str, chapter: int) -> str:
    """Return the lines of an outline from where it names a chapter up to the next one."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        counted = chapter_of(line.lstrip("#-*•· \t\u3000"))
        if counted is not None and counted.start == 0:
            inside = counted.value == chapter
        if inside:
            lines.append(line)
    return "\n".join(lines)
