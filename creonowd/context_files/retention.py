"""Which files have to go: lazy ones by age and use, eager ones by age alone.

Knows ages and sizes; deletes nothing.
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


class CleaningReason(StrEnum):
    """Why a file was cleaned."""

    LAZY_AGE = "lazy_age"
    LAZY_LRU = "lazy_lru"
    EAGER_AGE = "eager_age"


class RetentionLimits(NamedTuple):
    """How much a project may keep, and for how long."""

    bytes: int
    lazy_ms: int
    eager_ms: int

    @classmethod
    def of(cls, settings: Settings) -> "RetentionLimits":
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


def holdings(conversations: Iterable[ConversationFolder]) -> list[StoredFile]:
    """List the files that are there, with their sizes and last uses."""
    return [
        StoredFile(conversation, record, *there)
        for conversation in conversations
        for record in conversation.records()
        if (there := conversation.presence(record)) is not None
    ]


def choose(
    held: Sequence[StoredFile], limits: RetentionLimits, now_ms: int
) -> list[tuple[StoredFile, CleaningReason]]:
    """Choose what has to go, in order: what is too old, then lazy files as long as it is too much.

    An eager file never goes before its age, even if too much is left; a lazy one can be made again.
    """
    old = [(one, reason) for one in held if (reason := _too_old(one, limits, now_ms))]
    young = [one for one in held if not _too_old(one, limits, now_ms)]
    excess = sum(one.bytes for one in young) - limits.bytes
    unused: list[tuple[StoredFile, CleaningReason]] = []
    for one in sorted(young, key=lambda one: (one.last_used_ms, one.record.order)):
        if one.record.lazy and excess > 0:
            unused.append((one, CleaningReason.LAZY_LRU))
            excess -= one.bytes
    return old + unused


def _too_old(one: StoredFile, limits: RetentionLimits, now_ms: int) -> CleaningReason | None:
    if one.record.lazy:
        return CleaningReason.LAZY_AGE if now_ms - one.last_used_ms > limits.lazy_ms else None
    return CleaningReason.EAGER_AGE if now_ms - one.record.stored_at > limits.eager_ms else None


LIST_SECONDS = 5.0
PRUNE_SECONDS = 600.0
FIRST_PRUNE_SECONDS = 60.0

log = structlog.stdlib.get_logger(__name__)


class Cleaned(NamedTuple):
    """A file that was taken away, and why."""

    held: StoredFile
    reason: CleaningReason


class Pruned(NamedTuple):
    """What a cleaning did, what it left, and what it would have taken had nobody been reading."""

    cleaned: list[Cleaned]
    kept_files: int
    kept_bytes: int
    in_use: int


class Share(NamedTuple):
    """So many files of so many bytes."""

    files: int
    bytes: int


class Stats(NamedTuple):
    """What is kept: `made` of the `lazy` files are there, the others are recipes only."""

    conversations: int
    kinds: dict[Kind, Share]
    eager: Share
    lazy: int
    made: Share


async def prune(
    files: ContextFiles, project_id: str, conversation_id: str | None, most_bytes: int | None
) -> Pruned:
    """Clean a project or one of its conversations, by the settings or by a stricter limit."""
    limits = RetentionLimits.of(files.settings)
    if most_bytes is not None:
        limits = limits._replace(bytes=min(limits.bytes, most_bytes))
    return await files.run(_prune, files, project_id, conversation_id, limits)


async def stats(files: ContextFiles, project_id: str, conversation_id: str | None) -> Stats:
    """Count what a project or one of its conversations keeps."""
    return await files.run(_stats, files, project_id, conversation_id)


async def maintain(files: ContextFiles) -> None:
    """Look after the files from time to time, for ever."""
    waited = PRUNE_SECONDS - FIRST_PRUNE_SECONDS
    while True:
        await anyio.sleep(LIST_SECONDS)
        waited += LIST_SECONDS
        await look_after(files, clean=waited >= PRUNE_SECONDS)
        waited = 0.0 if waited >= PRUNE_SECONDS else waited


async def look_after(files: ContextFiles, *, clean: bool) -> None:
    """Bring indexes up to date and clean every project; what the disk refuses waits."""
    try:
        for conversation in files.store.behind():
            await files.run(conversation.write_manifest)
        if clean:
            await files.run(_prune_all, files)
    except (DaemonError, OSError) as error:
        log.warning("context_files_not_maintained", reason=type(error).__name__)


def _prune_all(files: ContextFiles) -> None:
    for project_id in sorted(files.store.projects()):
        _prune(files, project_id, None, RetentionLimits.of(files.settings))


def _prune(
    files: ContextFiles, project_id: str, conversation_id: str | None, limits: RetentionLimits
) -> Pruned:
    held = holdings(_conversations(files, project_id, conversation_id))
    chosen = choose(held, limits, files.store.clock.now_ms())
    cleaned = [Cleaned(*one) for one in chosen if one[0].conversation.clean(one[0].record.id)]
    if cleaned:
        freed = sum(one.held.bytes for one in cleaned)
        log.info("context_files_cleaned", files=len(cleaned), bytes=freed)
    gone = {id(one.held) for one in cleaned}
    kept = [one for one in held if id(one) not in gone]
    return Pruned(cleaned, len(kept), sum(one.bytes for one in kept), len(chosen) - len(cleaned))


def _stats(files: ContextFiles, project_id: str, conversation_id: str | None) -> Stats:
    conversations = _conversations(files, project_id, conversation_id)
    records = [record for one in conversations for record in one.records()]
    held = holdings(conversations)
    return Stats(
        len(conversations),
        {kind: _share([one for one in held if one.record.kind is kind]) for kind in Kind},
        _share([one for one in held if not one.record.lazy]),
        sum(record.lazy for record in records),
        _share([one for one in held if one.record.lazy]),
    )


def _share(held: Sequence[StoredFile]) -> Share:
    return Share(len(held), sum(one.bytes for one in held))


def _conversations(
    files: ContextFiles, project_id: str, conversation_id: str | None
) -> list[ConversationFolder]:
    if conversation_id is None:
        return list(files.store.of_project(project_id))
    found = files.store.find(project_id, conversation_id)
    return [] if found is None else [found]
