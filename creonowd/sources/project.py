"""The sources that every project has: its `.creonow` tree, constraints and documents.

What was made of files stays as it is until their bytes change. Knows which file is which source;
what a file says is read elsewhere.
"""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from creonowd.context.fragment import Layer
from creonowd.context.plan import Accompanied, Ask, Fetched, Need, Source
from creonowd.errors import DaemonError, WarningCode, warning_text
from creonowd.memo import Memo
from creonowd.sources.cast import Cast, Known
from creonowd.sources.characters import characters
from creonowd.sources.constraint_list import Constraint, constraint_list, unreadable
from creonowd.sources.joined import Joined
from creonowd.sources.mentioned import MentionedSource
from creonowd.sources.preferences import preferences
from creonowd.sources.retrieval.source import Passages, PassageSource
from creonowd.sources.rules_files import other_rules, style_guide
from creonowd.sources.settings_files import outline, settings_texts
from creonowd.sources.shelves import Outcomes, Shelf, Shelves
from creonowd.storage.relative_paths import CreonowFolder
from creonowd.workspace.creonow_tree import Folder, Tree
from creonowd.workspace.projects import Project

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
    def constraints(self) -> Sequence[Constraint]:
        """All of them, in the order of the file."""
        ...


class ProjectSources:
    """Makes the sources of any project, remembering what was made of which files."""

    def __init__(self, tree: Tree, constraints: ConstraintsStore, passages: Passages) -> None:
        self._tree = tree
        self._constraints = constraints
        self.passages = passages
        self._made: Made = Memo(KEPT_CHARACTERS, lambda _key, fetched: fetched.weight)
        self._joined: Joined[Outcomes] = Joined()
        self._known = Known()

    def of(self, project: Project) -> list[Source]:
        """Give the sources of a project for one assembly."""
        shelves = Shelves(self._tree, project, self._joined)
        files = (_FileSource(row, shelves, self._made) for row in FILES)
        constraints = partial(self._constraints.read_now, project.root)
        cast = Cast(shelves, self._known)
        return [
            *files,
            _ConstraintSource(constraints, shelves, self._made),
            MentionedSource(cast),
            PassageSource(self.passages, project, cast),
        ]

    def cast(self, project: Project) -> Cast:
        """Give everyone that a project knows by name."""
        return Cast(Shelves(self._tree, project, self._joined), self._known)


class _FileSource(Accompanied):
    timeout_ms: int | None = None

    def __init__(self, row: _Row, shelves: Shelves, made: Made) -> None:
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

    def _made_of(self, shelf: Shelf) -> Fetched:
        folder = shelf.folder(self._row.scope)
        return self._made.get((self.name, folder), lambda: self._row.read(folder))


class _ConstraintSource(Accompanied):
    layer = Layer.RULES
    name = "constraints"
    need = Need.ALWAYS
    unavailable = warning_text(WarningCode.CONSTRAINTS_UNAVAILABLE)
    timeout_ms: int | None = None

    def __init__(self, read: Callable[[], ListedConstraints], shelves: Shelves, made: Made) -> None:
        self._read = read
        self.party = self._shelves = shelves
        self._made = made
        shelves.offer(self.name, self._listed)

    async def fetch(self, ask: Ask) -> Fetched:
        """Read the constraints as they are now; a file that cannot be read is accounted for."""
        del ask
        return await self._shelves.make(self.name, self._listed)

    def _listed(self, shelf: Shelf) -> Fetched:
        del shelf
        try:
            listed = self._read()
        except DaemonError as error:
            return Fetched(left_out=(unreadable(error),), warnings=(self.unavailable,))
        return self._made.get((self.name, listed.data), lambda: constraint_list(listed.constraints))
