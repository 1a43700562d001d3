"""Everyone that a project knows by name, read at most once per assembly.

Knows which entities wait to be mentioned; finding names in a text is `Mentions`' business.
"""

from collections.abc import Iterable

from creonowd.context.fragment import Fragment
from creonowd.context.mentions import Mentions
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.sources.characters import Names, names_of, waiting
from creonowd.sources.entities import Inject
from creonowd.sources.shelves import Shelf, Shelves
from creonowd.storage.relative_paths import CreonowFolder
from creonowd.workspace.creonow_tree import Folder

KEPT_CHARACTERS = 8_000_000


class Entities(Model):
    """The names of every entity, and the entities that are injected when they are spoken of."""

    names: tuple[Names, ...]
    mentioned: tuple[Fragment, ...]
    manual: tuple[Fragment, ...]

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        waiting = sum(fragment.weight for fragment in (*self.mentioned, *self.manual))
        return waiting + 100 * len(self.names)


class Known:
    """What was made of which character files, for all projects."""

    def __init__(self) -> None:
        self.mentions = Mentions()
        self._made: Memo[Folder, Entities] = Memo(
            KEPT_CHARACTERS, lambda _folder, entities: entities.weight
        )

    def entities(self, folder: Folder) -> Entities:
        """Read the entities of a folder."""
        return self._made.get(folder, lambda: _entities(folder))


class Cast:
    """The entities of one project, for one assembly."""

    def __init__(self, shelves: Shelves, known: Known) -> None:
        self._shelves, self._known = shelves, known

    async def everyone(self) -> Entities:
        """Give all entities of the project."""
        return await self._shelves.make("cast", self._read)

    def find(self, names: Iterable[str], text: str) -> frozenset[str]:
        """Tell which of the names stand in a text."""
        return self._known.mentions.find(names, text)

    def _read(self, shelf: Shelf) -> Entities:
        return self._known.entities(shelf.folder(CreonowFolder.CHARACTERS))


def _entities(folder: Folder) -> Entities:
    return Entities(
        names=names_of(folder),
        mentioned=waiting(folder, Inject.MENTIONED),
        manual=waiting(folder, Inject.MANUAL),
    )
