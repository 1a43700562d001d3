"""`ai:usage` — what calls to models used and cost."""

from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

from anyio import to_thread
from msgspec import UNSET, Meta, UnsetType, field, structs

from creonowd.engine.services import Session
from creonowd.model import Model, Params, Result
from creonowd.rpc.channel import Channel
from creonowd.workspace.usage import (
    UsageRecord,
    UsageSums,
    add_up,
    day_of,
    group,
    lost_by_source,
    read_prices,
)

MOST_LOST = 50
LATEST_MS = 253_402_300_799_999
LARGEST_UTC_OFFSET = 14 * 60

Milliseconds = Annotated[int, Meta(ge=0, le=LATEST_MS)]


class UsageKey(StrEnum):
    """What calls are added up by."""

    DAY = "day"
    """By day."""
    PROJECT = "project"
    """By project."""
    SKILL = "skill"
    """By skill."""
    MODEL = "model"
    """By model."""
    PURPOSE = "purpose"
    """By what the call was for: `write` for skill runs, `judge` for verdicts, `summarise` for summaries."""


class GetUsage(Params):
    """Which calls, and what to add them up by."""

    group_by: UsageKey = UsageKey.DAY
    """What the groups of the reply are."""
    since: Milliseconds = field(name="from", default=0)
    """The first millisecond that counts, since 1970 (UTC); without it, all that is kept."""
    until: Milliseconds = field(name="to", default=LATEST_MS)
    """The first millisecond that does not count any more; without it, up to now."""
    project_id: str | None = None
    """Only calls of this project; without it, of all."""
    utc_offset_minutes: Annotated[int, Meta(ge=-LARGEST_UTC_OFFSET, le=LARGEST_UTC_OFFSET)] = 0
    """Where days begin: so many minutes east of UTC."""


class UsageGroup(UsageSums):
    """The sums of one day, project, skill, model or purpose; `key` is empty where there is none."""

    key: str
    """The day (`2026-01-31`), the project's, skill's or model's id, or the purpose; empty where
    there is none."""


class LostToChange(Model):
    """What the changes of one source cost: each of them changed the stable prefix."""

    source_ref: str
    """The file or source that changed."""
    calls: int
    """How many calls had a changed prefix because of it."""
    tokens: int
    """How many tokens of prefixes could not be read from the cache."""
    cost: float
    """What that cost, in `currency`."""


class UsageReport(Result):
    """What calls used and cost. `lostTo` names the sources whose changes cost most, the most expensive first.

    Prices hold for `pricesAsOf`; `<userData>/prices.json` replaces them.
    """

    group_by: UsageKey
    """What the groups are."""
    groups: list[UsageGroup]
    """The sums of each group, in the order of the keys; days from old to new."""
    total: UsageSums
    """The sums of all groups."""
    lost_to: list[LostToChange]
    """The sources whose changes cost most, the most expensive first."""
    currency: str
    """The currency of every sum of money, such as `USD`."""
    prices_as_of: str
    """The day for which the price list holds; `<userData>/prices.json` replaces it."""
    since: int | UnsetType = field(name="from", default=UNSET)
    """When the first of the calls was, in milliseconds since 1970 (UTC); absent if there was none."""
    until: int | UnsetType = field(name="to", default=UNSET)
    """When the last of the calls was, in milliseconds since 1970 (UTC); absent if there was none."""


async def get_usage(session: Session, params: GetUsage) -> UsageReport:
    """Add up what calls to models used, and what they cost by the price list."""
    if params.project_id is not None:
        await session.projects.find(params.project_id)
    prices = await to_thread.run_sync(read_prices, session.user_data)
    found = await session.usage.calls_between(params.since, params.until)
    records = [r for r in found if params.project_id in {None, r.project_id}]
    keys: dict[UsageKey, Callable[[UsageRecord], str]] = {
        UsageKey.DAY: lambda record: day_of(record.at_ms, params.utc_offset_minutes),
        UsageKey.PROJECT: lambda record: record.project_id,
        UsageKey.SKILL: lambda record: record.skill_id,
        UsageKey.MODEL: lambda record: record.model,
        UsageKey.PURPOSE: lambda record: record.purpose,
    }
    groups = group(records, keys[params.group_by], prices)
    return UsageReport(
        group_by=params.group_by,
        groups=[UsageGroup(key=key, **structs.asdict(sums)) for key, sums in groups],
        total=add_up(records, prices),
        lost_to=[
            LostToChange(source_ref=ref, calls=s.calls, tokens=s.lost_tokens, cost=s.lost)
            for ref, s in lost_by_source(records, prices)[:MOST_LOST]
        ],
        currency=prices.currency,
        prices_as_of=prices.as_of,
        since=records[0].at_ms if records else UNSET,
        until=records[-1].at_ms if records else UNSET,
    )


CHANNELS = (Channel("ai:usage", get_usage),)
