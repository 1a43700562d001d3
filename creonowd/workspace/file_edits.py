"""Changes of an author's own files that can be taken back: replaced whole, byte for byte.

A change is refused if the file is not the one that the client saw. What a file held before is kept
in memory for a while; with it a change is undone, unless the file has changed again since.
"""

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.memo import Memo
from creonowd.storage import stored_files
from creonowd.storage.safe_folder import LinkedFolder
from creonowd.storage.stored_files import disk_errors

LIMIT_BYTES = 64 * 1024 * 1024
KEPT_BYTES = 16_000_000

_CHANGED = Wording(
    "The file has changed since; read it again.", "文件在此期间已被改动，请重新读取。"
)
_FORGOTTEN = Wording("There is nothing to undo under this id any more.", "这一步已无法撤销。")


class WrittenFile(NamedTuple):
    """A file after a change, and the id that undoes the change; blank if nothing changed.

    `exists` is false where what was undone had made the file.
    """

    path: str
    data: bytes
    undo: str
    exists: bool = True


class _EditStep(NamedTuple):
    root: Path
    path: str
    before: bytes | None
    after: bytes | None
    within: str


class FileEdits:
    """Changes files of projects, and takes changes back."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._steps: Memo[str, _EditStep] = Memo(
            KEPT_BYTES, lambda _id, step: 500 + len(step.before or b"") + len(step.after or b"")
        )

    def change_now(
        self, root: Path, path: str, change: Callable[[bytes], bytes], *, within: str = ""
    ) -> WrittenFile:
        """Replace a file by what `change` makes of its bytes; blocks its thread.

        CONFLICT if it changes meanwhile. No link leads out of the project, nor out of its folder
        `within`.
        """
        before = LinkedFolder(root, within).snapshot(path, limit=LIMIT_BYTES).data
        after = change(before)
        if after == before:
            return WrittenFile(path, after, "")
        _replace(_EditStep(root, path, before, after, within))
        return WrittenFile(path, after, self.remember(root, path, before, after, within))

    def create_now(self, root: Path, path: str, data: bytes) -> WrittenFile:
        """Make a new file of a project and the folders above it; blocks its thread.

        CONFLICT if there is one already.
        """
        *above, _ = path.split("/")
        with disk_errors(path):
            for depth in range(len(above)):
                LinkedFolder(root).add_folder("/".join(above[: depth + 1]))
        _replace(_EditStep(root, path, None, data, ""))
        return WrittenFile(path, data, self.remember(root, path, None, data))

    def remember(
        self, root: Path, path: str, before: bytes | None, after: bytes | None, within: str = ""
    ) -> str:
        """Keep a change that was made, and return the id that undoes it; None stands for no file."""
        undo = self._clock.new_id("undo")
        self._steps.put(undo, _EditStep(root, path, before, after, within))
        return undo

    def undo_now(self, root: Path, undo: str) -> WrittenFile:
        """Take a change back; blocks its thread. The new id makes it again.

        NOT_FOUND if it is kept no more, CONFLICT if the file has changed since.
        """
        step = self._steps.peek(undo)
        if step is None or step.root != root:
            raise DaemonError(ErrorCode.NOT_FOUND, _FORGOTTEN, undo=undo)
        _replace(step._replace(before=step.after, after=step.before))
        again = self.remember(root, step.path, step.after, step.before, step.within)
        return WrittenFile(step.path, step.before or b"", again, exists=step.before is not None)


def revision_of(data: bytes) -> str:
    """Return the revision of a file: the SHA-256 of its bytes."""
    return sha256(data).hexdigest()


def changed_since() -> DaemonError:
    """Report that a file is not the one that a client saw."""
    return DaemonError(ErrorCode.CONFLICT, _CHANGED)


def _replace(step: _EditStep) -> None:
    with disk_errors(step.path):
        folder = LinkedFolder(step.root, step.within)
        if step.after is None:
            if folder.snapshot(step.path, limit=LIMIT_BYTES).data != step.before:
                raise changed_since()
            folder.remove(step.path)
        elif not folder.replace_unchanged(
            step.path, step.after, step.before, mode=stored_files.SHARED
        ):
            raise changed_since()
