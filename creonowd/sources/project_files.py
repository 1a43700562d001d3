"""The sources that every project has: its `.creonow` tree, constraints and documents.

What was made of files stays as it is until their bytes change. Knows which file is which source;
what a file says is read elsewhere.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, cast

from creonowd.context.fragment import (
    ConstraintOrigin,
    Fragment,
    FragmentKind,
    Layer,
    LeftOut,
    Place,
    Reason,
)
from creonowd.context.plan import Accompanied, Ask, Fetched, Need, Source
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.memo import Memo
from creonowd.sources.batched_reads import BatchedReads, FolderReader, Outcomes, SharedReads
from creonowd.sources.characters import EntityCache, MentionedSource, ProjectEntities, characters
from creonowd.sources.file_fragments import FileKind, as_fragment, is_json, leave_out, read_files
from creonowd.sources.passage_source import Passages, PassageSource
from creonowd.storage import front_matter
from creonowd.storage.relative_paths import CreonowFolder, folder_of
from creonowd.text import as_text, canonical_json
from creonowd.workspace.creonow_tree import DEFAULTS, Folder, Tree, TreeFile
from creonowd.workspace.projects import Project

STYLE = f"{folder_of(CreonowFolder.RULES)}/style.md"
TERMINOLOGY = f"{folder_of(CreonowFolder.RULES)}/terminology.json"
CONSTRAINTS = f"{folder_of(CreonowFolder.RULES)}/constraints.json"

_GUIDE = (STYLE, TERMINOLOGY)
_EMPTY = {
    STYLE: DEFAULTS["rules/style.md"].decode().strip(),
    TERMINOLOGY: canonical_json(DEFAULTS["rules/terminology.json"].decode()),
}


def style_guide(folder: Folder) -> Fetched:
    """Read style and terminology."""
    return read_files(_rule_file(0), folder, _GUIDE.__contains__, _rule)


def other_rules(folder: Folder) -> Fetched:
    """Read every other file of `rules/`; constraints have a source of their own."""
    known = {*_GUIDE, CONSTRAINTS}
    return read_files(_rule_file(1), folder, lambda path: path not in known, _rule)


def _rule(shelved: FileKind, file: TreeFile, text: str) -> Fragment | None:
    if text.strip() == _EMPTY.get(file.path):
        return None
    return as_fragment(shelved, file, text)


def _rule_file(group: int) -> FileKind:
    return FileKind(
        layer=Layer.RULES,
        source="rules",
        unavailable=WarningCode.RULES_UNAVAILABLE,
        group=group,
    )


FOLDER = folder_of(CreonowFolder.SETTINGS)
MEMORY = f"{FOLDER}/memory.json"

_OUTLINE = f"{FOLDER}/outline"


def settings_texts(folder: Folder) -> Fetched:
    """Read every settings text but the outline."""
    shelved = _setting_file("settings", WarningCode.SETTINGS_UNAVAILABLE)
    return read_files(shelved, folder, lambda p: p != MEMORY and not is_outline(p), _setting)


def outline(folder: Folder) -> Fetched:
    """Read `settings/outline.*`."""
    shelved = _setting_file("outline", WarningCode.OUTLINE_UNAVAILABLE)
    return read_files(shelved, folder, is_outline, _setting)


def is_outline(path: str) -> bool:
    """Tell whether a settings file holds the outline."""
    if not path.lower().startswith(_OUTLINE):
        return False
    name = path.rpartition("/")[2]
    return path == f"{FOLDER}/{name}" and name.rsplit(".", 1)[0].lower() == "outline"


def _setting(shelved: FileKind, file: TreeFile, text: str) -> Fragment | LeftOut:
    claimed = _claimed(file.path, text)
    if claimed is None:
        return as_fragment(shelved, file, text)
    if isinstance(claimed, bool) or not isinstance(claimed, (int, float)) or not 0 <= claimed <= 1:
        return leave_out(shelved, file.path, Reason.INVALID_FORMAT)
    return as_fragment(shelved, file, text, confidence=float(claimed))


def _claimed(path: str, text: str) -> Any:
    if is_json(path):
        value = json.loads(text)
        return cast("dict[str, Any]", value).get("confidence") if isinstance(value, dict) else None
    read = front_matter.read(text)
    return None if read is None else read.values.get("confidence")


def _setting_file(source: str, unavailable: WarningCode) -> FileKind:
    return FileKind(layer=Layer.SETTINGS, source=source, unavailable=unavailable)


CONSTRAINT_GROUP = 2

_ORIGINS = {"user": ConstraintOrigin.USER, "kg": ConstraintOrigin.KG}


class ConstraintFields(Protocol):
    """What is needed of a constraint."""

    @property
    def id(self) -> str:
        """Its own name."""
        ...

    @property
    def text(self) -> str:
        """What it demands."""
        ...

    @property
    def source(self) -> Literal["user", "kg"]:
        """Who laid it down."""
        ...

    @property
    def priority(self) -> int:
        """Which leaves last."""
        ...

    @property
    def degradable(self) -> bool:
        """Whether it may leave at all."""
        ...


def constraint_list(constraints: Sequence[ConstraintFields]) -> Fetched:
    """Make a fragment of every constraint."""
    return Fetched(
        fragments=tuple(_fragment(index, each) for index, each in enumerate(constraints))
    )


def unreadable(error: DaemonError) -> LeftOut:
    """Account for a file that could not be read or made no sense."""
    failed = error.code is ErrorCode.IO_ERROR
    return LeftOut(
        layer=Layer.RULES,
        source="constraints",
        source_ref=CONSTRAINTS,
        reason=Reason.READ_ERROR if failed else Reason.INVALID_FORMAT,
        place=Place(CONSTRAINT_GROUP),
    )


def _fragment(index: int, constraint: ConstraintFields) -> Fragment:
    return Fragment(
        layer=Layer.RULES,
        source="constraints",
        source_ref=f"{CONSTRAINTS}#{constraint.id}",
        text=constraint.text,
        kind=FragmentKind.CONSTRAINT,
        origin=_ORIGINS[constraint.source],
        degradable=constraint.degradable,
        priority=constraint.priority,
        place=Place(CONSTRAINT_GROUP, "", index),
    )


VERSION = 1
PREFERENCE_GROUP = 1


def preferences(folder: Folder) -> Fetched:
    """Read the rules of the memory file; one that makes no sense costs itself, not the others."""
    if any(problem.path == MEMORY for problem in folder.problems):
        return _degraded(_left_out(MEMORY, Reason.READ_ERROR))
    file = next((file for file in folder.files if file.path == MEMORY), None)
    if file is None:
        return Fetched()
    rules = _rules(file)
    if rules is None:
        return _degraded(_left_out(MEMORY, Reason.INVALID_FORMAT))
    made = [_preference(index, rule) for index, rule in enumerate(rules)]
    fragments = tuple(item for item in made if isinstance(item, Fragment))
    return _degraded(*(item for item in made if isinstance(item, LeftOut)), fragments=fragments)


def _rules(file: TreeFile) -> list[Any] | None:
    try:
        value = json.loads(as_text(file.data) or "")
    except (ValueError, RecursionError):
        return None
    held = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    rules = held.get("rules")
    return (
        cast("list[Any]", rules)
        if held.get("version") == VERSION and isinstance(rules, list)
        else None
    )


def _preference(index: int, rule: Any) -> Fragment | LeftOut:
    said = cast("dict[str, Any]", rule) if isinstance(rule, dict) else {}
    named = said.get("id")
    ref = f"{MEMORY}#{named if isinstance(named, str) and named else index + 1}"
    text, confidence = said.get("text"), said.get("confidence", 1.0)
    if not isinstance(text, str) or not text.strip() or not _is_share(confidence):
        return _left_out(ref, Reason.INVALID_FORMAT)
    return Fragment(
        layer=Layer.SETTINGS,
        source="memory",
        source_ref=ref,
        text=text,
        confidence=float(confidence),
        place=Place(PREFERENCE_GROUP, MEMORY, index),
    )


def _is_share(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= 1


def _left_out(ref: str, reason: Reason) -> LeftOut:
    return LeftOut(layer=Layer.SETTINGS, source="memory", source_ref=ref, reason=reason)


def _degraded(*left_out: LeftOut, fragments: tuple[Fragment, ...] = ()) -> Fetched:
    return Fetched(
        fragments=fragments,
        left_out=left_out,
        warnings=(warning_text(WarningCode.MEMORY_UNAVAILABLE),) if left_out else (),
    )


KEPT_CHARACTERS = 16_000_000

Made = Memo[object, Fetched]


class _Row(NamedTuple):
    name: str
    layer: Layer
    scope: CreonowFolder
    need: Need
    code: WarningCode
    read: Callable[[Folder], Fetched]


FILES = (
    _Row(
        "style",
        Layer.RULES,
        CreonowFolder.RULES,
        Need.STYLE_GUIDE,
        WarningCode.RULES_UNAVAILABLE,
        style_guide,
    ),
    _Row(
        "rules",
        Layer.RULES,
        CreonowFolder.RULES,
        Need.ALWAYS,
        WarningCode.RULES_UNAVAILABLE,
        other_rules,
    ),
    _Row(
        "characters",
        Layer.RULES,
        CreonowFolder.CHARACTERS,
        Need.CHARACTERS,
        WarningCode.CHARACTERS_UNAVAILABLE,
        characters,
    ),
    _Row(
        "settings",
        Layer.SETTINGS,
        CreonowFolder.SETTINGS,
        Need.CHARACTERS,
        WarningCode.SETTINGS_UNAVAILABLE,
        settings_texts,
    ),
    _Row(
        "outline",
        Layer.SETTINGS,
        CreonowFolder.SETTINGS,
        Need.OUTLINE,
        WarningCode.OUTLINE_UNAVAILABLE,
        outline,
    ),
    _Row(
        "memory",
        Layer.SETTINGS,
        CreonowFolder.SETTINGS,
        Need.USER_PREFERENCES,
        WarningCode.MEMORY_UNAVAILABLE,
        preferences,
    ),
)


class ConstraintsStore(Protocol):
    """Where constraints are kept."""

    def read_now(self, root: Path) -> "ListedConstraints":
        """Read the constraints of a project; for those who are in a thread already."""
        ...


class ListedConstraints(Protocol):
    """What a store tells."""

    @property
    def data(self) -> bytes:
        """The bytes that they were read from."""
        ...

    @property
    def constraints(self) -> Sequence[ConstraintFields]:
        """All of them, in the order of the file."""
        ...


class ProjectSources:
    """Makes the sources of any project, remembering what was made of which files."""

    def __init__(self, tree: Tree, constraints: ConstraintsStore, passages: Passages) -> None:
        self._tree = tree
        self._constraints = constraints
        self.passages = passages
        self._made: Made = Memo(KEPT_CHARACTERS, lambda _key, fetched: fetched.weight)
        self._joined: SharedReads[Outcomes] = SharedReads()
        self._known = EntityCache()

    def of(self, project: Project) -> list[Source]:
        """Give the sources of a project for one assembly."""
        shelves = BatchedReads(self._tree, project, self._joined)
        files = (_FileSource(row, shelves, self._made) for row in FILES)
        constraints = partial(self._constraints.read_now, project.root)
        cast = ProjectEntities(shelves, self._known)
        return [
            *files,
            _ConstraintSource(constraints, shelves, self._made),
            MentionedSource(cast),
            PassageSource(self.passages, project, cast),
        ]

    def cast(self, project: Project) -> ProjectEntities:
        """Give everyone that a project knows by name."""
        return ProjectEntities(BatchedReads(self._tree, project, self._joined), self._known)


class _FileSource(Accompanied):
    timeout_ms: int | None = None

    def __init__(self, row: _Row, shelves: BatchedReads, made: Made) -> None:
        self.layer, self.name, self.need = row.layer, row.name, row.need
        self.unavailable = warning_text(row.code)
        self.party = self._shelves = shelves
        self._row = row
        self._made = made
        shelves.offer(self.name, self._made_of)

    async def fetch(self, ask: Ask) -> Fetched:
        """Make fragments of the files that are there now."""
        del ask
        return await self._shelves.make(self.name, self._made_of)

    def _made_of(self, shelf: FolderReader) -> Fetched:
        folder = shelf.folder(self._row.scope)
        return self._made.get((self.name, folder), lambda: self._row.read(folder))


class _ConstraintSource(Accompanied):
    layer = Layer.RULES
    name = "constraints"
    need = Need.ALWAYS
    unavailable = warning_text(WarningCode.CONSTRAINTS_UNAVAILABLE)
    timeout_ms: int | None = None

    def __init__(
        self, read: Callable[[], ListedConstraints], shelves: BatchedReads, made: Made
    ) -> None:
        self._read = read
        self.party = self._shelves = shelves
        self._made = made
        shelves.offer(self.name, self._listed)

    async def fetch(self, ask: Ask) -> Fetched:
        """Read the constraints as they are now; a file that cannot be read is accounted for."""
        del ask
        return await self._shelves.make(self.name, self._listed)

    def _listed(self, shelf: FolderReader) -> Fetched:
        del shelf
        try:
            listed = self._read()
        except DaemonError as error:
            return Fetched(left_out=(unreadable(error),), warnings=(self.unavailable,))
        return self._made.get((self.name, listed.data), lambda: constraint_list(listed.constraints))
