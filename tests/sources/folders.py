"""Folders of the tree, made up for tests."""

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.creonow_tree import Folder, Problem, TreeFile


def folder(files: dict[str, str | bytes], problems: dict[str, DaemonError] | None = None) -> Folder:
    """Make what `read_all` would have given."""
    return Folder(
        files=tuple(
            TreeFile(path=path, size_bytes=1, updated_at_ms=1, data=_bytes(data))
            for path, data in sorted(files.items())
        ),
        problems=tuple(Problem(path=path, error=error) for path, error in (problems or {}).items()),
    )


def unreadable() -> DaemonError:
    return DaemonError(ErrorCode.IO_ERROR, "The disk refused.")


def too_big() -> DaemonError:
    return DaemonError(ErrorCode.IO_ERROR, "The file is too large.", reason="too_large")


def _bytes(data: str | bytes) -> bytes:
    return data.encode() if isinstance(data, str) else data
