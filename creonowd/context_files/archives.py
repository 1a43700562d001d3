"""Export and import of a conversation as requests: in a thread, with progress, until cancelled.

Knows requests and paths that owners name; archives themselves are others' work.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import from_thread

from creonowd.clock import Clock
from creonowd.context_files.files import ContextFiles, ConversationKey
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.requests import report_progress
from creonowd.threads import in_thread

if TYPE_CHECKING:
    from creonowd.context_files.archive_export import ArchiveProgress, Exported, Report
    from creonowd.context_files.archive_import import Imported

_SECONDS_BETWEEN = 0.1


async def export_conversation(files: ContextFiles, where: ConversationKey, path: str) -> "Exported":
    """Pack a conversation into a new archive at an absolute path, over what may be there."""
    from creonowd.context_files import archive_export

    target = _absolute(path)
    conversation = await files.run(files.store.find, *where)
    if conversation is None:
        raise DaemonError(
            ErrorCode.NOT_FOUND, "There is no such conversation.", field="conversationId"
        )
    await files.run(_check_folder, target)
    report = _reporter(files.store.clock)
    return await in_thread(lambda stop: archive_export.export(conversation, target, stop, report))


async def import_conversation(
    files: ContextFiles, project_id: str, conversation_id: str | None, path: str
) -> "Imported":
    """Take in an archive at an absolute path, all of it or nothing.

    Without a `conversation_id` it goes into the conversation that it came from.
    """
    from creonowd.context_files import archive_import
    from creonowd.context_files.archive_import import ImportRules

    source = _absolute(path)
    target = archive_import.ImportTarget(project_id, conversation_id)
    rules = ImportRules(
        files.settings.context_import_max_bytes, files.recipes.check, files.views.told
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


def _reporter(clock: Clock) -> "Report":
    """Tell the caller from a thread how far the work is, but not at every step."""
    last = 0.0

    def report(progress: "ArchiveProgress") -> None:
        nonlocal last
        now = clock.monotonic()
        finished = progress.files == progress.total_files
        if finished or now - last >= _SECONDS_BETWEEN:
            last = now
            from_thread.run_sync(report_progress, _value(progress))

    return report


def _value(progress: "ArchiveProgress") -> dict[str, Any]:
    return {
        "files": progress.files,
        "totalFiles": progress.total_files,
        "bytes": progress.bytes,
        "totalBytes": progress.total_bytes,
    }
