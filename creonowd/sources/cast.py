"""Everyone that a project knows by name, read at most once per assembly.

Knows which entities wait to be mentioned; finding names in a text is `Mentions`' business.
"""

from collections.abc import Iterable
from typing import Any

from creonowd.context.fragment import Fragment
from creonowd.context.memo import Memo
from creonowd.context.mentions import Mentions
from creonowd.sources.characters import Names, names_of, waiting
from creonowd.sources.entities import Inject
from creonowd.sources.shelves import Shelves
from creonowd.workspace.paths import Scope
from creonowd.workspace.tree import Folder

KEPT = 64


class Known:
    """What was made of which character files, for all projects."""

    def __init__(self) -> None:
        self.mentions = Mentions()
        self.made: Memo[object, tuple[Any, ...]] = Memo(KEPT, lambda _key, _value: 1)


class Cast:
    """The entities of one project, for one assembly."""

    def __init__(self, shelves: Shelves, known: Known) -> None:
        self._shelves, self._known = shelves, known

    async def waiting(self, inject: Inject) -> tuple[Fragment, ...]:
        """Give the entities that are injected in this way, as they would be."""
        folder = await self._folder()
        return self._known.made.get((inject, _held(folder)), lambda: waiting(folder, inject))

    async def names(self) -> tuple[Names, ...]:
        """Tell by which names each entity is known."""
        folder = await self._folder()
        return self._known.made.get(("names", _held(folder)), lambda: names_of(folder))

    def find(self, names: Iterable[str], text: str) -> frozenset[str]:
        """Tell which of the names stand in a text."""
        return self._known.mentions.find(names, text)

    async def _folder(self) -> Folder:
        return await self._shelves.folder(Scope.CHARACTERS)


def _held(folder: Folder) -> tuple[tuple[str, bytes], ...]:
    return tuple((file.path, file.data) for file in folder.files)
