"""How long context files stay: lazy ones by age and use, eager ones by age alone.

`maintain` runs for as long as the daemon; `prune` and `usage` answer requests.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

import anyio
import structlog

from creonowd.context_files.files import ContextFiles
from creonowd.context_files.folder import ConversationFolder
from creonowd.context_files.records import Kind, Record
from creonowd.errors import DaemonError
from creonowd.settings import Settings

DAY_MS = 24 * 3600 * 1000
MANIFEST_SECONDS = 60.0
PRUNE_SECONDS = 600.0
FIRST_PRUNE_SECONDS = 60.0

log = structlog.stdlib.get_logger(__name__)


class CleaningReason(StrEnum):
    """Why a file was cleaned."""

    LAZY_AGE = "lazy_age"
    """It was not read for too long; it is made again when read."""
    LAZY_LRU = "lazy_lru"
    """There was too much, and it was the least recently read; it is made again when read."""
    EAGER_AGE = "eager_age"
    """It was put too long ago."""


class RetentionLimits(NamedTuple):
    """How much a project may keep, and for how long."""

    bytes: int
    lazy_ms: int
    eager_ms: int

    @classmethod
    def from_settings(cls, settings: Settings) -> "RetentionLimits":
        """Read the limits from the settings."""
        return cls(
            settings.context_max_bytes,
            settings.context_lazy_days * DAY_MS,
            settings.context_eager_days * DAY_MS,
        )


class StoredFile(NamedTuple):
    """A file that takes up space."""

    conversation: ConversationFolder
    record: Record
    bytes: int
    last_used_ms: int


class CleanedFile(NamedTuple):
    """A file that was removed, or is to be, and why."""

    file: StoredFile
    reason: CleaningReason


class PruneResult(NamedTuple):
    """What was removed, what is left, and how many files stayed only because they have readers."""

    cleaned: list[CleanedFile]
    kept_files: int
    kept_bytes: int
    in_use: int


class FileTotal(NamedTuple):
    """A number of files and the sum of their bytes."""

    files: int
    bytes: int


class StorageUsage(NamedTuple):
    """What is stored: of the `lazy` files `lazy_made` are there, the others are recipes only."""

    conversations: int
    kinds: dict[Kind, FileTotal]
    eager: FileTotal
    lazy: int
    lazy_made: FileTotal


async def prune(
    files: ContextFiles, project_id: str, conversation_id: str | None, max_bytes: int | None
) -> PruneResult:
    """Clean a project or one of its conversations, by the settings or by a stricter limit."""
    limits = RetentionLimits.from_settings(files.settings)
    if max_bytes is not None:
        limits = limits._replace(bytes=min(limits.bytes, max_bytes))
    return await files.run(_prune, files, project_id, conversation_id, limits)


async def usage(files: ContextFiles, project_id: str, conversation_id: str | None) -> StorageUsage:
    """Count what a project or one of its conversations keeps."""
    return await files.run(_usage, files, project_id, conversation_id)


async def maintain(files: ContextFiles) -> None:
    """Bring indexes up to date every minute and prune every ten, for ever."""
    waited = PRUNE_SECONDS - FIRST_PRUNE_SECONDS
    while True:
        await anyio.sleep(MANIFEST_SECONDS)
        waited += MANIFEST_SECONDS
        await maintain_once(files, clean=waited >= PRUNE_SECONDS)
        waited = 0.0 if waited >= PRUNE_SECONDS else waited


async def maintain_once(files: ContextFiles, *, clean: bool) -> None:
    """Bring indexes up to date, and with `clean` prune every project; log what the disk refuses."""
    try:
        for conversation in files.store.with_stale_manifest():
            await files.run(conversation.write_manifest)
        if clean:
            await files.run(_prune_all, files)
    except (DaemonError, OSError) as error:
        log.warning("context_files_maintenance_failed", reason=type(error).__name__)


def stored_files(conversations: Iterable[ConversationFolder]) -> list[StoredFile]:
    """List the files that are there, with their sizes and last uses."""
    return [
        StoredFile(conversation, record, *size_and_last_use)
        for conversation in conversations
        for record in conversation.records()
        if (size_and_last_use := conversation.size_and_last_use(record)) is not None
    ]


def choose_files(
    files: Sequence[StoredFile], limits: RetentionLimits, now_ms: int
) -> list[CleanedFile]:
    """Choose what to clean: what is too old, then the least used lazy files until the rest fits.

    An eager file never goes before its age, even if too much is left; a lazy one can be made again.
    """
    chosen: list[CleanedFile] = []
    young: list[StoredFile] = []
    for file in files:
        if reason := _too_old(file, limits, now_ms):
            chosen.append(CleanedFile(file, reason))
        else:
            young.append(file)
    excess = sum(file.bytes for file in young) - limits.bytes
    for file in sorted(young, key=lambda file: (file.last_used_ms, file.record.order)):
        if file.record.lazy and excess > 0:
            chosen.append(CleanedFile(file, CleaningReason.LAZY_LRU))
            excess -= file.bytes
    return chosen


def _too_old(file: StoredFile, limits: RetentionLimits, now_ms: int) -> CleaningReason | None:
    if file.record.lazy:
        return CleaningReason.LAZY_AGE if now_ms - file.last_used_ms > limits.lazy_ms else None
    return CleaningReason.EAGER_AGE if now_ms - file.record.stored_at > limits.eager_ms else None


def _prune_all(files: ContextFiles) -> None:
    for project_id in sorted(files.store.projects()):
        _prune(files, project_id, None, RetentionLimits.from_settings(files.settings))


def _prune(
    files: ContextFiles, project_id: str, conversation_id: str | None, limits: RetentionLimits
) -> PruneResult:
    stored = stored_files(_conversations(files, project_id, conversation_id))
    chosen = choose_files(stored, limits, files.store.clock.now_ms())
    cleaned = [one for one in chosen if one.file.conversation.clean(one.file.record.id)]
    freed = sum(one.file.bytes for one in cleaned)
    if cleaned:
        log.info("context_files_cleaned", files=len(cleaned), bytes=freed)
    return PruneResult(
        cleaned,
        len(stored) - len(cleaned),
        sum(file.bytes for file in stored) - freed,
        len(chosen) - len(cleaned),
    )


def _usage(files: ContextFiles, project_id: str, conversation_id: str | None) -> StorageUsage:
    conversations = _conversations(files, project_id, conversation_id)
    records = [record for conversation in conversations for record in conversation.records()]
    stored = stored_files(conversations)
    return StorageUsage(
        len(conversations),
        {kind: _total([file for file in stored if file.record.kind is kind]) for kind in Kind},
        _total([file for file in stored if not file.record.lazy]),
        len([record for record in records if record.lazy]),
        _total([file for file in stored if file.record.lazy]),
    )


def _total(files: Sequence[StoredFile]) -> FileTotal:
    return FileTotal(len(files), sum(file.bytes for file in files))


def _conversations(
    files: ContextFiles, project_id: str, conversation_id: str | None
) -> list[ConversationFolder]:
    if conversation_id is None:
        return list(files.store.of_project(project_id))
    found = files.store.find(project_id, conversation_id)
    return [] if found is None else [found]
