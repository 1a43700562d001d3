"""The folders of one project's `.creonow` tree, each read at most once per assembly.

Assemblies that ask at the same time share what is read.
"""

from collections import defaultdict
from functools import partial

import anyio

from creonowd.sources.joined import Joined
from creonowd.workspace.paths import Scope
from creonowd.workspace.registry import Project
from creonowd.workspace.tree import Folder, Tree


class Shelves:
    """Reads a folder for whoever asks first; the others get what was read."""

    def __init__(self, tree: Tree, project: Project, joined: Joined[Folder]) -> None:
        self._tree = tree
        self._joined = joined
        self._project = project
        self._read: dict[Scope, Folder] = {}
        self._turns: defaultdict[Scope, anyio.Lock] = defaultdict(anyio.Lock)

    async def folder(self, scope: Scope) -> Folder:
        """Give all files of a scope."""
        async with self._turns[scope]:
            if scope not in self._read:
                self._read[scope] = await self._joined.read(
                    (self._project.root, scope), partial(self._tree.read_all, self._project, scope)
                )
            return self._read[scope]
