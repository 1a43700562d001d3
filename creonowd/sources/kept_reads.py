"""What rounds read of projects, kept for as long as Linux reports no change of it."""

from pathlib import Path, PurePosixPath
from typing import NamedTuple

from creonowd.memo import Memo
from creonowd.retrieval.document_list import IGNORE_FILES
from creonowd.storage.folder_revisions import MOST_ROOTS, FolderRevisions, WatchedFolder
from creonowd.threads import KeptOnly, KeptValues, RoundCache
from creonowd.workspace.creonow_tree import (
    OUTLINE_SUFFIXES,
    TREE,
    CreonowFolder,
    is_relevant_folder,
)


class _Kept(NamedTuple):
    revisions: tuple[int | None, ...]
    values: KeptValues


class KeptReads:
    """What rounds read of the projects used last, each for as long as nothing changes there.

    `shared` is what all projects share: a folder of user data.
    """

    def __init__(self, revisions: FolderRevisions, shared: WatchedFolder) -> None:
        self._revisions, self._shared = revisions, shared
        self._kept: Memo[Path, _Kept] = Memo(2 * MOST_ROOTS)

    def peek(self, root: Path) -> KeptOnly | None:
        """Return what is kept if nothing has changed by now; uses no disk."""
        kept = self._kept.peek(root)
        if kept is None:
            return None
        now = tuple(map(self._revisions.peek, self._places(root)))
        return KeptOnly(kept.values) if now == kept.revisions else None

    def begin(self, root: Path) -> RoundCache:
        """Return the cache for a round that begins now; blocks its thread."""
        revisions = tuple(map(self._revisions.read, self._places(root)))
        if None in revisions:
            self._kept.forget(root)
            return RoundCache()
        kept = self._kept.peek(root)
        if kept is None or kept.revisions != revisions:
            kept = _Kept(revisions, KeptValues())
            self._kept.put(root, kept)
        return RoundCache(kept.values)

    def forget(self, root: Path) -> None:
        """Drop what was read of a project, and watch it no more."""
        self._kept.forget(root)
        self._revisions.forget(root)
        if not len(self._kept):
            self._revisions.forget(self._shared.root)

    def close(self) -> None:
        """Watch nothing any more."""
        self._revisions.close()

    def _places(self, root: Path) -> tuple[WatchedFolder, WatchedFolder]:
        return WatchedFolder(root, _enters, _reads), self._shared


def _enters(folder: str, name: str) -> bool:
    """Return whether an assembly may read what is in the folder `name` of a project's `folder`."""
    if folder == TREE:
        return name in _FOLDERS_OF_TREE
    if folder == f"{TREE}/cache":
        return name == "summaries"
    if folder.startswith(f"{TREE}/"):
        return not name.startswith(".")
    return is_relevant_folder(folder, name)


def _reads(folder: str, name: str) -> bool:
    """Return whether an assembly may read the file `name` in a project's `folder`."""
    if folder.startswith(TREE) or name == TREE:
        return True
    return PurePosixPath(name).suffix.lower() in OUTLINE_SUFFIXES or name.lower() in IGNORE_FILES


_FOLDERS_OF_TREE = {scope.partition("/")[0] for scope in CreonowFolder} | {"skills"}
