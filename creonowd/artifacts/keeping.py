"""How much is kept and what is cleaned, now and from time to time.

Knows conversations and limits; which files go is decided by `retention`.
"""

from collections.abc import Sequence
from typing import NamedTuple

import anyio
import structlog

from creonowd.artifacts.conversation import Conversation
from creonowd.artifacts.files import ContextFiles
from creonowd.artifacts.refs import Kind
from creonowd.artifacts.retention import CleaningReason, Held, Limits, choose, holdings
from creonowd.errors import DaemonError

LIST_SECONDS = 5.0
PRUNE_SECONDS = 600.0
FIRST_PRUNE_SECONDS = 60.0

log = structlog.stdlib.get_logger(__name__)


class Cleaned(NamedTuple):
    """A file that was taken away, and why."""

    held: Held
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
    limits = Limits.of(files.settings)
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
        _prune(files, project_id, None, Limits.of(files.settings))


def _prune(
    files: ContextFiles, project_id: str, conversation_id: str | None, limits: Limits
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


def _share(held: Sequence[Held]) -> Share:
    return Share(len(held), sum(one.bytes for one in held))


def _conversations(
    files: ContextFiles, project_id: str, conversation_id: str | None
) -> list[Conversation]:
    if conversation_id is None:
        return list(files.store.of_project(project_id))
    found = files.store.find(project_id, conversation_id)
    return [] if found is None else [found]
