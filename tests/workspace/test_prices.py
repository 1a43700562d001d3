"""The price list: the packaged one, the user's own, and which model has which price."""

from pathlib import Path

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.prices import (
    FILE,
    TokenUse,
    cost_of,
    cost_without_cache,
    packaged_prices,
    read_prices,
)

OWN = b"""{"version": 1, "asOf": "2027-01-01", "currency": "CNY",
  "models": [{"name": "deepseek-flash", "input": 2, "output": 8, "cacheRead": 0.04}]}"""


def test_the_packaged_prices_are_dated_and_each_model_stands_once() -> None:
    prices = packaged_prices()

    names = [price.name for price in prices.models]
    assert prices.as_of >= "2026-11-01"
    assert len(set(names)) == len(names)
    assert all((price.cache_read or 0) <= price.input < price.output for price in prices.models)


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        ("gpt-5", "gpt-5"),
        ("GPT-5-2026-08-07", "gpt-5"),
        ("openrouter/openai/gpt-5.4-mini", "gpt-5.4-mini"),
        ("claude-sonnet-5-5-20261007", "claude-sonnet-5-5"),
        ("claude-sonnet-5-20260601", "claude-sonnet-5"),
        ("gpt-5.9", None),
        ("gpt-50", None),
        ("claude-sonnet-5-7", None),
        ("", None),
    ],
)
def test_a_dated_version_has_the_price_of_its_model_and_another_model_has_none(
    model: str, listed: str | None
) -> None:
    price = packaged_prices().price_of(model)

    assert (None if price is None else price.name) == listed


def test_tokens_cost_by_how_they_were_used() -> None:
    price = packaged_prices().price_of("claude-sonnet-5-5")
    assert price is not None
    use = TokenUse(fresh=1_000_000, read=2_000_000, written=1_000_000, output=500_000)

    assert cost_of(price, use) == pytest.approx(2 + 2 * 0.1 + 2.5 + 5)
    assert cost_without_cache(price, use) == pytest.approx(4 * 2 + 5)


def test_the_users_list_takes_the_place_of_the_packaged_one(tmp_path: Path) -> None:
    packaged = read_prices(tmp_path)
    (tmp_path / FILE).write_bytes(OWN)

    own = read_prices(tmp_path)

    assert packaged is packaged_prices()
    assert (own.currency, own.as_of) == ("CNY", "2027-01-01")
    assert own.price_of("gpt-5") is None


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", ErrorCode.INVALID_ARGUMENT),
        (b"{", ErrorCode.INVALID_ARGUMENT),
        (b"\xff\xfe", ErrorCode.INVALID_ARGUMENT),
        (b"[" * 100_000, ErrorCode.INVALID_ARGUMENT),
        (OWN.replace(b": 2,", b": -2,"), ErrorCode.INVALID_ARGUMENT),
        (OWN.replace(b": 2,", b': "2",'), ErrorCode.INVALID_ARGUMENT),
        (OWN.replace(b'"version": 1', b'"version": 9'), ErrorCode.VERSION_TOO_NEW),
    ],
)
def test_a_list_that_makes_no_sense_is_an_error_that_names_it(
    tmp_path: Path, content: bytes, code: ErrorCode
) -> None:
    (tmp_path / FILE).write_bytes(content)

    with pytest.raises(DaemonError) as caught:
        read_prices(tmp_path)

    assert caught.value.code is code
    assert caught.value.details["file"] == FILE
