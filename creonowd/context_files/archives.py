"""Requests to export and import a conversation: in a thread, with progress, until cancelled."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import from_thread

from creonowd.clock import Clock
from creonowd.context_files.files import ContextFiles, ConversationKey
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.rpc.requests import report_progress
from creonowd.storage.safe_folder import MAX_NAME, problem_with_name
from creonowd.threads import in_thread

if TYPE_CHECKING:
    from creonowd.context_files.archive_format import (
        ArchiveProgress,
        ExportResult,
        ImportResult,
        ReportProgress,
    )
    from creonowd.context_files.record_store import NewRounds

_SECONDS_BETWEEN_REPORTS = 0.1


async def export_conversation(
    files: ContextFiles, conversation: ConversationKey, path: str, rounds: bytes | None
) -> "ExportResult":
    """Pack a conversation into an archive at an absolute path, replacing only one of ours."""
    from creonowd.context_files import archive_format

    target = _absolute(path)
    folder = await files.run(files.store.find, *conversation)
    if folder is None:
        raise DaemonError(
            ErrorCode.NOT_FOUND, "There is no such conversation.", field="conversationId"
        )
    check_target = partial(_check_target, max_bytes=files.settings.context_import_max_bytes)
    await files.run(check_target, target)
    report = _reporter(files.store.clock)
    return await in_thread(
        lambda stop: archive_format.export(
            folder, target, stop, report, rounds, check_target=check_target
        )
    )


async def conversation_in(files: ContextFiles, path: str) -> str:
    """Return the id of the conversation that an archive at an absolute path holds."""
    from creonowd.context_files import archive_format

    limit = files.settings.context_import_max_bytes
    return await files.run(archive_format.conversation_in, _absolute(path), limit)


async def import_conversation(
    files: ContextFiles,
    conversation: ConversationKey,
    path: str,
    new_rounds: Callable[[bytes], "NewRounds | None"],
) -> "ImportResult":
    """Import an archive at an absolute path into a conversation, all of it or nothing."""
    from creonowd.context_files import archive_format

    source = _absolute(path)
    target = archive_format.ImportTarget(*conversation)
    rules = archive_format.ImportRules(
        files.settings.context_import_max_bytes,
        files.recipes.check,
        files.views.visible_text,
        new_rounds,
    )
    report = _reporter(files.store.clock)
    return await in_thread(
        lambda stop: archive_format.import_archive(
            files.store, target, source, rules, stop=stop, report=report
        )
    )


def _absolute(path: str) -> Path:
    if "\0" in path or not (absolute := Path(path)).is_absolute():
        raise _invalid_target("relative", _RELATIVE)
    problem = problem_with_name(absolute.name) if absolute.name else "length"
    if any(len(part) > MAX_NAME for part in absolute.parts):
        problem = "length"  # Windows only says that it is not there
    if problem is not None or not _has_status(absolute):
        raise _invalid_target(problem or "length", _NOT_PORTABLE)
    return absolute


def _has_status(path: Path) -> bool:
    """Return whether the system can look for a path, be there something or not."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return True
    except (OSError, ValueError):
        return False
    return True


def _check_target(path: Path, max_bytes: int) -> None:
    """Refuse to write an archive over anything but an archive of ours."""
    from creonowd.context_files import archive_format

    if path.is_dir():
        raise _invalid_target("folder", _FOLDER)
    if not path.parent.is_dir():
        raise DaemonError(
            ErrorCode.NOT_FOUND, "The folder of the archive does not exist.", field="path"
        )
    if not os.path.lexists(path):
        return
    if path.is_symlink() or not archive_format.is_archive(path, max_bytes):
        raise _invalid_target("not_an_archive", _NOT_OURS)


_RELATIVE = Wording("path must be an absolute path.", "path 须为绝对路径。")
_NOT_PORTABLE = Wording(
    "path is not one that every system can have.", "path 并非所有系统都能使用的路径。"
)
_FOLDER = Wording("path is a folder; name the archive.", "path 是文件夹；请指定归档文件。")
_NOT_OURS = Wording(
    "path is a file that is no archive of ours; choose another name.",
    "path 处已有并非本程序归档的文件；请换一个名称。",
)


def _invalid_target(reason: str, wording: Wording) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, wording, field="path", reason=reason)


def _reporter(clock: Clock) -> "ReportProgress":
    """Return a function that sends progress from a thread to the client, ten times a second."""
    last = 0.0

    def report(progress: "ArchiveProgress") -> None:
        nonlocal last
        now = clock.monotonic()
        finished = progress.files == progress.total_files
        if finished or now - last >= _SECONDS_BETWEEN_REPORTS:
            last = now
            value = {
                "files": progress.files,
                "totalFiles": progress.total_files,
                "bytes": progress.bytes,
                "totalBytes": progress.total_bytes,
            }
            from_thread.run_sync(report_progress, value)

    return report
