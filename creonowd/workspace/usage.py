"""What calls to models used: a line for each in `<userData>/usage/<month>.jsonl`, and sums of them.

Counts are the providers' own. Lines hold no text, and those of the last 24 months are kept.

Prices are for a million tokens. Where a price depends on the time of day the packaged list has the
higher one; where it depends on the length of the prompt, the one for short prompts. A model that is
not listed has no price, and the sums name it.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import timedelta, timezone
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated

import anyio
import msgspec
import structlog
from anyio import to_thread
from msgspec import Meta

from creonowd.clock import utc_time
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import stored_files
from creonowd.storage.journal import LineWriter
from creonowd.storage.stored_files import disk_errors

FOLDER = "usage"
VERSION = 1
MONTHS_KEPT = 24
DIGITS = 9
UNPAID = "fake"
PRICES_FILE = "prices.json"
PRICES_VERSION = 1
MILLION = 1_000_000
MOST_MODELS = 2_000

_DATED = re.compile(r"(?:[-@:](?:\d{6,8}|\d{4}-\d\d-\d\d|latest|preview)(?:[-:.]\w+)*)?")

Amount = Annotated[float, Meta(ge=0, le=1_000_000)]

log = structlog.stdlib.get_logger(__name__)


class ModelPrice(Model):
    """What a million tokens of a model cost, by how they were used.

    `name` also stands for dated versions of the model, such as `name-2026-10-07`. Without
    `cacheRead` or `cacheWrite` those tokens cost what other input does.
    """

    name: Annotated[str, Meta(min_length=1, max_length=256)]
    input: Amount
    output: Amount
    cache_read: Amount | None = None
    cache_write: Amount | None = None
    cache_write_hour: Amount | None = None


class PriceList(Model):
    """The prices of models, and the day for which they hold."""

    version: int
    as_of: Annotated[str, Meta(max_length=40)]
    currency: Annotated[str, Meta(min_length=1, max_length=8)]
    models: Annotated[tuple[ModelPrice, ...], Meta(max_length=MOST_MODELS)]

    def price_of(self, model: str) -> ModelPrice | None:
        """Return the price of a model, whatever gateway its name mentions; None if it has none."""
        name = model.strip().lower().rpartition("/")[2]
        fitting = [price for price in self.models if _is_named(name, price.name.lower())]
        return max(fitting, key=lambda price: len(price.name), default=None)


class TokenUse(Model):
    """Tokens by what they cost: input that was neither read from a cache nor written to it, and so on."""

    fresh: int = 0
    read: int = 0
    written: int = 0
    output: int = 0


def cost_of(price: ModelPrice, use: TokenUse) -> float:
    """Return what tokens cost."""
    return (
        use.fresh * price.input
        + use.read * _or_input(price.cache_read, price)
        + use.written * _or_input(price.cache_write, price)
        + use.output * price.output
    ) / MILLION


def cost_without_cache(price: ModelPrice, use: TokenUse) -> float:
    """Return what the same tokens would cost if nothing had been cached."""
    return cost_of(price, TokenUse(fresh=use.fresh + use.read + use.written, output=use.output))


@cache
def packaged_prices() -> PriceList:
    """Return the list that comes with the package."""
    data = resources.files("creonowd.workspace").joinpath(PRICES_FILE).read_bytes()
    return stored_files.decode(data, PriceList, version=PRICES_VERSION, name=PRICES_FILE)


def read_prices(user_data: Path) -> PriceList:
    """Read the user's list, else the packaged one; INVALID_ARGUMENT if the user's is not valid."""
    data = stored_files.content(user_data / PRICES_FILE, limit=stored_files.LIMIT_BYTES)
    if data is None:
        return packaged_prices()
    try:
        return stored_files.decode(data, PriceList, version=PRICES_VERSION, name=PRICES_FILE)
    except stored_files.DamagedFileError:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "prices.json cannot be understood; fix it, or delete it to use the packaged prices.",
            file=PRICES_FILE,
        ) from None


def _is_named(name: str, listed: str) -> bool:
    """Return whether a name is a listed one, or that of a dated version of it."""
    return name.startswith(listed) and _DATED.fullmatch(name[len(listed) :]) is not None


def _or_input(amount: float | None, price: ModelPrice) -> float:
    return price.input if amount is None else amount


class UsageRecord(Model, omit_defaults=True):
    """One call to a model; `input_tokens` is None if the provider did not report its counts.

    `input_tokens` includes what came from the cache and what was written to it. `changed_by` is
    the source whose change changed the stable prefix, `lost_tokens` how much of the prefix was then
    not read from the cache.
    """

    version: int = VERSION
    at_ms: int
    project_id: str
    skill_id: str = ""
    provider: str
    model: str
    purpose: str
    input_tokens: int | None = None
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    changed_by: str = ""
    lost_tokens: int = 0

    @property
    def use(self) -> TokenUse:
        """Its tokens, by the price that they have."""
        read, written = self.cache_read_tokens, self.cache_write_tokens
        fresh = max(0, (self.input_tokens or 0) - read - written)
        return TokenUse(fresh=fresh, read=read, written=written, output=self.output_tokens)


class UsageLedger:
    """The record of all calls. No kill of the process loses a line; a power cut may lose the last ones."""

    def __init__(self, user_data: Path) -> None:
        self._folder = user_data / FOLDER
        self._writer = LineWriter()
        self._ready: set[Path] = set()
        self._lock = anyio.Lock()

    async def record(self, record: UsageRecord) -> bool:
        """Add a call; return False if that fails, since an answer must not be lost with it."""
        path = self._folder / f"{_month(record.at_ms)}.jsonl"
        line = msgspec.json.encode(record) + b"\n"
        try:
            if path not in self._ready:
                async with self._lock:
                    await to_thread.run_sync(self._prepare, path)
                    self._ready.add(path)
            await self._writer.append(path, line)
        except DaemonError as error:
            log.warning("usage_not_recorded", code=error.code)
            return False
        return True

    async def calls_between(self, from_ms: int, to_ms: int) -> list[UsageRecord]:
        """Return the calls from a time up to before another, oldest first."""
        return await to_thread.run_sync(lambda: sorted(self._read(from_ms, to_ms), key=_time))

    def _prepare(self, path: Path) -> None:
        """Make the folder, end a line that a kill cut, and drop months that are too old."""
        with disk_errors(FOLDER):
            stored_files.make_folders(path.parent)
            oldest = _months_before(path.stem, MONTHS_KEPT)
            for old in self._files():
                if old.stem < oldest:
                    stored_files.remove(old)
        data = stored_files.content(path, limit=stored_files.LIMIT_BYTES)
        if data and not data.endswith(b"\n"):
            stored_files.append(path, b"\n", synced=False)

    def _read(self, from_ms: int, to_ms: int) -> Iterator[UsageRecord]:
        first, last = _month(from_ms), _month(to_ms)
        for path in self._files():
            if not first <= path.stem <= last:
                continue
            data = stored_files.content(path, limit=stored_files.LIMIT_BYTES) or b""
            for record in _records(path.name, data):
                if from_ms <= record.at_ms < to_ms:
                    yield record

    def _files(self) -> list[Path]:
        return sorted(path for path in self._folder.glob("????-??.jsonl") if path.is_file())


class UsageSums(Model):
    """Sums over calls, by the providers' own counts."""

    calls: int
    """How many calls to a model."""
    input_tokens: int
    """Tokens that were sent, with those read from the cache and written to it."""
    output_tokens: int
    """Tokens that were written, thinking included."""
    cache_read_tokens: int
    """Tokens that the providers read from their caches."""
    cache_write_tokens: int
    """Tokens that they wrote to their caches."""
    cost: float
    """What it cost by the price list."""
    saved: float
    """What the same tokens would have cost more without a cache; negative where writing to it cost
    more than was read from it."""
    lost_tokens: int
    """Tokens of prefixes that had changed, as far as they were not read from the cache."""
    lost: float
    """What these cost."""
    unpriced_calls: int
    """Calls to models without a price; they are in no sum of money."""
    unreported_calls: int
    """Calls of which the provider reported no counts; they are in no sum."""


def add_up(records: Sequence[UsageRecord], prices: PriceList) -> UsageSums:
    """Add up calls: their tokens, what they cost, and what the cache saved of that."""
    known = {model: prices.price_of(model) for model in {record.model for record in records}}
    counted = [record for record in records if record.input_tokens is not None]
    paid = [record for record in counted if record.provider != UNPAID]
    priced = [(price, r) for r in paid if (price := known[r.model]) is not None]
    cost = math.fsum(cost_of(price, record.use) for price, record in priced)
    uncached = math.fsum(cost_without_cache(price, record.use) for price, record in priced)
    return UsageSums(
        calls=len(records),
        input_tokens=sum(record.input_tokens or 0 for record in counted),
        output_tokens=sum(record.output_tokens for record in counted),
        cache_read_tokens=sum(record.cache_read_tokens for record in counted),
        cache_write_tokens=sum(record.cache_write_tokens for record in counted),
        cost=round(cost, DIGITS),
        saved=round(uncached - cost, DIGITS),
        lost_tokens=sum(record.lost_tokens for record in counted),
        lost=round(math.fsum(_cost_of_loss(price, record) for price, record in priced), DIGITS),
        unpriced_calls=len(counted) - len(priced),
        unreported_calls=len(records) - len(counted),
    )


def group(
    records: Iterable[UsageRecord], key: Callable[[UsageRecord], str], prices: PriceList
) -> list[tuple[str, UsageSums]]:
    """Add up calls by a key, in the order of the keys."""
    groups: dict[str, list[UsageRecord]] = {}
    for record in records:
        groups.setdefault(key(record), []).append(record)
    return [(name, add_up(groups[name], prices)) for name in sorted(groups)]


def lost_by_source(
    records: Sequence[UsageRecord], prices: PriceList
) -> list[tuple[str, UsageSums]]:
    """Add up the calls whose prefix had changed by what changed it, the most expensive first."""
    changed = [record for record in records if record.changed_by]
    found = group(changed, lambda record: record.changed_by, prices)
    return sorted(found, key=lambda pair: (-pair[1].lost, -pair[1].lost_tokens, pair[0]))


def day_of(at_ms: int, utc_offset_minutes: int = 0) -> str:
    """Return the day of a time, such as 2026-11-18, that many minutes east of UTC."""
    zone = timezone(timedelta(minutes=utc_offset_minutes))
    return utc_time(at_ms).astimezone(zone).date().isoformat()


def _cost_of_loss(price: ModelPrice, record: UsageRecord) -> float:
    paid = cost_of(price, TokenUse(fresh=record.lost_tokens))
    return paid - cost_of(price, TokenUse(read=record.lost_tokens))


def _records(name: str, data: bytes) -> Iterator[UsageRecord]:
    """Read the sound lines; those that a kill cut or a newer daemon wrote are skipped."""
    damaged = 0
    for line in data.split(b"\n"):
        if not line:
            continue
        try:
            record = msgspec.json.decode(line, type=UsageRecord)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            damaged += 1
            continue
        if record.version <= VERSION:
            yield record
    if damaged:
        log.warning("usage_lines_skipped", file=name, lines=damaged)


def _time(record: UsageRecord) -> int:
    return record.at_ms


def _month(at_ms: int) -> str:
    return f"{utc_time(at_ms):%Y-%m}"


def _months_before(month: str, count: int) -> str:
    year, number = map(int, month.split("-"))
    total = year * 12 + number - 1 - count
    return f"{total // 12:04}-{total % 12 + 1:02}"
