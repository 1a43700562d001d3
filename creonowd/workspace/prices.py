"""What models cost: a dated list that comes with the package, or the user's own in its place.

Prices are for a million tokens. Of prices that depend on the time of day or on the length of the
prompt the packaged list has the higher one by time and the one for short prompts. A model that is
not listed has no price, and what it used is said to be without one.
"""

import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.storage import atomic, versioned_json

FILE = "prices.json"
VERSION = 1
MILLION = 1_000_000
MOST_MODELS = 2_000

_DATED = re.compile(r"(?:[-@:](?:\d{6,8}|\d{4}-\d\d-\d\d|latest|preview)(?:[-:.]\w+)*)?")

Amount = Annotated[float, Meta(ge=0, le=1_000_000)]


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
    data = resources.files("creonowd.workspace").joinpath(FILE).read_bytes()
    return versioned_json.decode(data, PriceList, version=VERSION, name=FILE)


def read_prices(user_data: Path) -> PriceList:
    """Read the user's list, else the packaged one; INVALID_ARGUMENT if the user's makes no sense."""
    data = atomic.content(user_data / FILE, limit=versioned_json.LIMIT_BYTES)
    if data is None:
        return packaged_prices()
    try:
        return versioned_json.decode(data, PriceList, version=VERSION, name=FILE)
    except versioned_json.DamagedFileError:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            "prices.json cannot be understood; mend it, or delete it to use the packaged prices.",
            file=FILE,
        ) from None


def _is_named(name: str, listed: str) -> bool:
    """Return whether a name is a listed one, or that of a dated version of it."""
    return name.startswith(listed) and _DATED.fullmatch(name[len(listed) :]) is not None


def _or_input(amount: float | None, price: ModelPrice) -> float:
    return price.input if amount is None else amount
