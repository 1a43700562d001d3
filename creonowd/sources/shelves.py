"""The folders of one project's `.creonow` tree, each read at most once per assembly."""

from collections import defaultdict

import anyio

from creonowd.workspace.paths import Scope
from creonowd.workspace.registry import Project
from creonowd.workspace.tree import Folder, Tree


class Shelves:
    """Reads a folder for whoever asks first; the others get what was read."""

    def __init__(self, tree: Tree, project: Project) -> None:
        self._tree = tree
        self._project = project
        self._read: dict[Scope, Folder] = {}
        self._turns: defaultdict[Scope, anyio.Lock] = defaultdict(anyio.Lock)

    async def folder(self, scope: Scope) -> Folder:
        """Give all files of a scope."""
        async with self._turns[scope]:
            if scope not in self._read:
                self._read[scope] = await self._tree.read_all(self._project, scope)
            return self._read[scope]
