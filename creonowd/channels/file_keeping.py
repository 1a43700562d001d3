"""`context:files:prune` and `stats` — how much is kept, and cleaning it by age and size."""

from typing import Annotated

from msgspec import Meta

from creonowd.channels.session import Session
from creonowd.context_files import retention
from creonowd.context_files.records import Kind
from creonowd.context_files.retention import Cleaned, CleaningReason, Share
from creonowd.model import Model, Params, Result
from creonowd.rpc.channel import Channel

MOST_NAMED = 1000


class OfProject(Params):
    """A project, or one of its conversations."""

    project_id: str
    conversation_id: str | None = None


class PruneContextFiles(OfProject):
    """A limit stricter than the settings', for lazy files."""

    max_bytes: Annotated[int, Meta(ge=0)] | None = None


class CleanedContextFile(Model):
    """A file that was taken away; a lazy one is made again when it is next looked at."""

    conversation_id: str
    id: str
    kind: Kind
    bytes: int
    reason: CleaningReason


class ContextFilesPruned(Result):
    """What was cleaned and what is kept; `inUse` files were being read and stay.

    `cleaned` names the first thousand, `cleanedFiles` counts all.
    """

    cleaned: list[CleanedContextFile]
    cleaned_files: int
    freed_bytes: int
    kept_files: int
    kept_bytes: int
    in_use: int


class ContextFileAmount(Model):
    """So many files of so many bytes."""

    files: int
    bytes: int


class ContextFileStats(Result):
    """What is kept: `lazy` files of which `lazyMade` are there, and the limits from the settings."""

    conversations: int
    files: int
    bytes: int
    kinds: dict[str, ContextFileAmount]
    eager: ContextFileAmount
    lazy: int
    lazy_made: ContextFileAmount
    max_bytes: int
    lazy_days: int
    eager_days: int


async def prune_files(session: Session, params: PruneContextFiles) -> ContextFilesPruned:
    """Clean context files by age and size; eager ones never before their age."""
    await session.projects.find(params.project_id)
    done = await retention.prune(
        session.files, params.project_id, params.conversation_id, params.max_bytes
    )
    return ContextFilesPruned(
        cleaned=[_cleaned(one) for one in done.cleaned[:MOST_NAMED]],
        cleaned_files=len(done.cleaned),
        freed_bytes=sum(one.held.bytes for one in done.cleaned),
        kept_files=done.kept_files,
        kept_bytes=done.kept_bytes,
        in_use=done.in_use,
    )


async def file_stats(session: Session, params: OfProject) -> ContextFileStats:
    """Tell how much a project or conversation keeps."""
    await session.projects.find(params.project_id)
    found = await retention.stats(session.files, params.project_id, params.conversation_id)
    settings = session.settings
    return ContextFileStats(
        conversations=found.conversations,
        files=found.eager.files + found.lazy,
        bytes=found.eager.bytes + found.made.bytes,
        kinds={kind: _amount(share) for kind, share in found.kinds.items()},
        eager=_amount(found.eager),
        lazy=found.lazy,
        lazy_made=_amount(found.made),
        max_bytes=settings.context_max_bytes,
        lazy_days=settings.context_lazy_days,
        eager_days=settings.context_eager_days,
    )


def _cleaned(one: Cleaned) -> CleanedContextFile:
    record = one.held.record
    return CleanedContextFile(
        conversation_id=one.held.conversation.id,
        id=record.id,
        kind=record.kind,
        bytes=one.held.bytes,
        reason=one.reason,
    )


def _amount(share: Share) -> ContextFileAmount:
    return ContextFileAmount(files=share.files, bytes=share.bytes)


CHANNELS = (
    Channel("context:files:prune", prune_files),
    Channel("context:files:stats", file_stats),
)
