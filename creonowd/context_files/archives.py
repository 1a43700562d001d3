"""Requests to export and import a conversation: in a thread, with progress, until cancelled."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import from_thread

from creonowd.clock import Clock
from creonowd.context_files.files import ContextFiles, ConversationKey
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.requests import report_progress
from creonowd.threads import in_thread

if TYPE_CHECKING:
    from creonowd.context_files.archive_export import ArchiveProgress, ExportResult, ReportProgress
    from creonowd.context_files.archive_import import ImportResult
    from creonowd.context_files.record_store import NewRounds

_SECONDS_BETWEEN_REPORTS = 0.1


async def export_conversation(
    files: ContextFiles, conversation: ConversationKey, path: str, rounds: bytes | None
) -> "ExportResult":
    """Pack a conversation into an archive at an absolute path, replacing what may be there."""
    from creonowd.context_files import archive_export

    target = _absolute(path)
    folder = await files.run(files.store.find, *conversation)
    if folder is None:
        raise DaemonError(
            ErrorCode.NOT_FOUND, "There is no such conversation.", field="conversationId"
        )
    await files.run(_check_folder, target)
    report = _reporter(files.store.clock)
    return await in_thread(lambda stop: archive_export.export(folder, target, stop, report, rounds))


async def conversation_in(files: ContextFiles, path: str) -> str:
    """Return the id of the conversation that an archive at an absolute path holds."""
    from creonowd.context_files import archive_import

    limit = files.settings.context_import_max_bytes
    return await files.run(archive_import.conversation_in, _absolute(path), limit)


async def import_conversation(
    files: ContextFiles,
    conversation: ConversationKey,
    path: str,
    new_rounds: Callable[[bytes], "NewRounds | None"],
) -> "ImportResult":
    """Import an archive at an absolute path into a conversation, all of it or nothing."""
    from creonowd.context_files import archive_import

    source = _absolute(path)
    target = archive_import.ImportTarget(*conversation)
    rules = archive_import.ImportRules(
        files.settings.context_import_max_bytes,
        files.recipes.check,
        files.views.visible_text,
        new_rounds,
    )
    report = _reporter(files.store.clock)
    return await in_thread(
        lambda stop: archive_import.import_archive(
            files.store, target, source, rules, stop=stop, report=report
        )
    )


def _absolute(path: str) -> Path:
    if "\0" not in path and (absolute := Path(path)).is_absolute():
        return absolute
    raise DaemonError(ErrorCode.INVALID_ARGUMENT, "path must be an absolute path.", field="path")


def _check_folder(path: Path) -> None:
    if path.is_dir():
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "path is a folder; name the archive.", field="path"
        )
    if not path.parent.is_dir():
        raise DaemonError(
            ErrorCode.NOT_FOUND, "The folder of the archive does not exist.", field="path"
        )


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
