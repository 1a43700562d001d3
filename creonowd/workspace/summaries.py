"""The summaries of a project's chapters, each for one text of one document.

Those that a model or the daemon made lie in `.creonow/cache/summaries/`, named by the hash of the
text that they summarise: they may be deleted at any time, and a change of one chapter concerns no
other. Those that the author wrote lie in `.creonow/summaries/`, by document; only the author
overwrites them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import anyio
import msgspec
import structlog
from anyio import to_thread

from creonowd.clock import Clock
from creonowd.context.story_order import StoryDocument
from creonowd.errors import DaemonError, ErrorCode
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.storage.stored_files import disk_errors
from creonowd.text import file_stem
from creonowd.workspace.creonow_tree import TREE, CreonowFolder, Folder, Tree, TreeFile, folder_of
from creonowd.workspace.projects import Project

VERSION = 1
EDITED = folder_of(CreonowFolder.EDITED_SUMMARIES)
MADE = folder_of(CreonowFolder.MADE_SUMMARIES)
LONGEST_SUMMARY = 8000
MOST_OUTDATED = 500
KEPT_PROJECTS = 16

log = structlog.stdlib.get_logger(__name__)


class SummaryOrigin(StrEnum):
    """Who wrote a summary: the author, a model, or nobody, if it is an extract of the chapter."""

    AUTHOR = "author"
    """The author wrote or edited it."""
    MODEL = "model"
    """A model wrote it."""
    EXTRACT = "extract"
    """Sentences of the chapter itself."""


class ChapterSummary(Model):
    """A summary of the text with the hash `digest`; `brief` is the same in one sentence.

    `document` is the path that the text had. `model` is empty unless one wrote it.
    """

    document: str
    digest: str
    text: str
    brief: str
    origin: SummaryOrigin
    model: str = ""
    at_ms: int = 0


class _StoredSummary(ChapterSummary):
    version: int = VERSION


class FoundSummary(NamedTuple):
    """The summary that counts for a document; stale if the chapter has changed since."""

    summary: ChapterSummary
    stale: bool = False


@dataclass(frozen=True, eq=False)
class Summaries:
    """The stored summaries of a project: the author's by document, the others by text.

    As long as no file changes, reading again returns the very same value.
    """

    edited: Mapping[str, ChapterSummary]
    made: Mapping[str, ChapterSummary]

    def of(self, document: StoryDocument) -> FoundSummary | None:
        """Return the summary that counts for a document as it is now; None if none is stored.

        The author's own counts as long as the chapter is the same, then what a model made of the
        new text. Where there is none, the author's words still say more than an extract.
        """
        edited, made = self.edited.get(document.path), self.made.get(document.digest)
        if edited is not None and edited.digest == document.digest:
            return FoundSummary(edited)
        if made is not None and (made.origin is SummaryOrigin.MODEL or edited is None):
            return FoundSummary(made)
        return None if edited is None else FoundSummary(edited, stale=True)


class SummaryStore:
    """Reads and writes the summaries of all projects."""

    def __init__(self, tree: Tree, clock: Clock) -> None:
        self._tree, self._clock = tree, clock
        self._lock = anyio.Lock()
        self._read: Memo[Path, tuple[Folder, Folder, Summaries]] = Memo(KEPT_PROJECTS)

    async def read(self, project: Project) -> Summaries:
        """Return what is stored now."""
        return await to_thread.run_sync(self.read_now, project.root, abandon_on_cancel=True)

    def read_now(self, root: Path) -> Summaries:
        """Return what is stored now; blocks its thread. Files that are not valid are left out."""
        edited = self._folder(root, CreonowFolder.EDITED_SUMMARIES)
        made = self._folder(root, CreonowFolder.MADE_SUMMARIES)
        kept = self._read.peek(root)
        if kept is not None and kept[0] is edited and kept[1] is made:
            return kept[2]
        summaries = Summaries(
            edited={one.document: one for one in _decode(edited, _is_edited)},
            made={one.digest: one for one in _decode(made, _is_made)},
        )
        self._read.put(root, (edited, made, summaries))
        return summaries

    def _folder(self, root: Path, scope: CreonowFolder) -> Folder:
        try:
            return self._tree.read_all_now(root, scope)
        except DaemonError as error:
            log.warning("summaries_unreadable", folder=folder_of(scope), code=error.code)
            return Folder()

    async def keep(self, project: Project, summary: ChapterSummary) -> None:
        """Store a summary that was made; what the author wrote is left alone."""
        path = f"{MADE}/{summary.digest}.json"
        async with self._lock:
            await to_thread.run_sync(_write, project.root, path, self._with_time(summary))

    async def edit(self, project: Project, summary: ChapterSummary) -> ChapterSummary:
        """Store the author's own summary of a document, over the one before."""
        stamped = self._with_time(summary)
        async with self._lock:
            await to_thread.run_sync(_write, project.root, _edited_path(summary.document), stamped)
        return stamped

    async def forget_edit(self, project: Project, document: str) -> bool:
        """Remove the author's summary of a document, and return whether there was one."""
        async with self._lock:
            return await to_thread.run_sync(_remove, project.root, _edited_path(document))

    async def clean(self, project: Project, digests: Iterable[str]) -> int:
        """Remove made summaries of texts that no chapter has any more, all but the newest ones.

        An author who goes back to an older text finds its summary again.
        """
        async with self._lock:
            return await to_thread.run_sync(self._clean, project.root, frozenset(digests))

    def _clean(self, root: Path, current: frozenset[str]) -> int:
        folder = self._folder(root, CreonowFolder.MADE_SUMMARIES)
        outdated = [file for file in folder.files if file_stem(file.path) not in current]
        newest_first = sorted(outdated, key=lambda file: (-file.updated_at_ms, file.path))
        with disk_errors(MADE):
            for file in newest_first[MOST_OUTDATED:]:
                LinkedFolder(root, MADE).remove(file.path)
        return len(newest_first[MOST_OUTDATED:])

    def _with_time(self, summary: ChapterSummary) -> ChapterSummary:
        return msgspec.structs.replace(summary, at_ms=self._clock.now_ms())


def _decode(
    folder: Folder, fits: Callable[[TreeFile, ChapterSummary], bool]
) -> Iterator[ChapterSummary]:
    for file in folder.files:
        try:
            found = stored_files.decode(file.data, ChapterSummary, version=VERSION, name=file.path)
        except (stored_files.DamagedFileError, DaemonError):
            continue
        if len(found.text) <= LONGEST_SUMMARY and found.text.strip() and fits(file, found):
            yield found


def _is_edited(file: TreeFile, summary: ChapterSummary) -> bool:
    return summary.origin is SummaryOrigin.AUTHOR and file.path == _edited_path(summary.document)


def _is_made(file: TreeFile, summary: ChapterSummary) -> bool:
    return (
        summary.origin is not SummaryOrigin.AUTHOR and file.path == f"{MADE}/{summary.digest}.json"
    )


def _edited_path(document: str) -> str:
    return f"{EDITED}/{sha256(document.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def _write(root: Path, path: str, summary: ChapterSummary) -> None:
    folder = LinkedFolder(root, TREE)
    with disk_errors(path):
        _refuse_newer(folder, path)
        stored = _StoredSummary(**msgspec.structs.asdict(summary))
        data = msgspec.json.format(msgspec.json.encode(stored), indent=2) + b"\n"
        folder.write(path, data, mode=stored_files.SHARED)


def _refuse_newer(folder: LinkedFolder, path: str) -> None:
    """Fail with VERSION_TOO_NEW if a newer daemon wrote the file; a damaged one is replaced."""
    if folder.status(path) is None:
        return
    try:
        data = folder.snapshot(path, limit=LONGEST_SUMMARY * 16).data
        stored_files.decode(data, ChapterSummary, version=VERSION, name=path)
    except stored_files.DamagedFileError:
        return
    except DaemonError as error:
        if error.code is ErrorCode.VERSION_TOO_NEW:
            raise


def _remove(root: Path, path: str) -> bool:
    folder = LinkedFolder(root, EDITED)
    with disk_errors(path):
        found = folder.status(path) is not None
        folder.remove(path)
    return found
