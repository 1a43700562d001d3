"""The record of calls: kept over a restart, readable after a kill, and golden sums."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.usage import (
    FOLDER,
    PRICES_FILE,
    TokenUse,
    UsageLedger,
    UsageRecord,
    add_up,
    cost_of,
    cost_without_cache,
    day_of,
    group,
    lost_by_source,
    packaged_prices,
    read_prices,
)

DAY = 86_400_000
NOVEMBER = int(datetime(2026, 11, 18, 23, 30, tzinfo=UTC).timestamp() * 1000)
FOREVER = 10**13


def call(at_ms: int = NOVEMBER, **counts: int) -> UsageRecord:
    return UsageRecord(
        at_ms=at_ms,
        project_id="prj_1",
        skill_id="builtin:continue",
        provider="anthropic",
        model="claude-sonnet-5-5",
        purpose="write",
        input_tokens=5_000,
        output_tokens=400,
        cache_read_tokens=counts.get("read", 0),
        cache_write_tokens=counts.get("written", 0),
    )


async def test_calls_are_kept_over_a_restart_and_found_by_time(tmp_path: Path) -> None:
    calls = [call(NOVEMBER + n * 30 * DAY) for n in range(3)]
    ledger = UsageLedger(tmp_path)
    for one in reversed(calls):
        assert await ledger.record(one)

    restarted = UsageLedger(tmp_path)

    assert await restarted.calls_between(0, FOREVER) == calls
    assert await restarted.calls_between(calls[1].at_ms, calls[2].at_ms) == calls[1:2]
    assert len(list((tmp_path / FOLDER).iterdir())) == 3


async def test_a_line_that_a_kill_tore_costs_itself_only(tmp_path: Path) -> None:
    await UsageLedger(tmp_path).record(call())
    (file,) = (tmp_path / FOLDER).iterdir()
    file.write_bytes(file.read_bytes() + file.read_bytes()[:40])

    restarted = UsageLedger(tmp_path)
    await restarted.record(call(NOVEMBER + 1))

    assert await restarted.calls_between(0, FOREVER) == [call(), call(NOVEMBER + 1)]


async def test_lines_of_a_newer_daemon_and_other_files_are_left_alone(tmp_path: Path) -> None:
    await UsageLedger(tmp_path).record(call())
    (file,) = (tmp_path / FOLDER).iterdir()
    newer = file.read_bytes().replace(b'"atMs"', b'"version":2,"atMs"') + b"\xff\n[[\n"
    file.write_bytes(file.read_bytes() + newer)
    (tmp_path / FOLDER / "notes.jsonl").write_text("{}", encoding="utf-8")
    (tmp_path / FOLDER / "2026-12.jsonl").mkdir()

    assert await UsageLedger(tmp_path).calls_between(0, FOREVER) == [call()]
    assert newer in file.read_bytes()


async def test_months_that_are_too_old_go(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path)
    await ledger.record(call(NOVEMBER - 800 * DAY))
    await ledger.record(call(NOVEMBER - 700 * DAY))

    await ledger.record(call())

    assert len(await ledger.calls_between(0, FOREVER)) == 2


async def test_a_folder_that_cannot_be_written_costs_the_record_only(tmp_path: Path) -> None:
    (tmp_path / FOLDER).write_text("in the way", encoding="utf-8")

    assert await UsageLedger(tmp_path).record(call()) is False


def test_sums_of_calls_are_golden() -> None:
    """A call whose cache was written, one that read it, one without counts, one without a price."""
    calls = [
        call(written=4_000),
        call(read=4_000),
        replace(call(), input_tokens=None, output_tokens=0),
        replace(call(), model="some-model"),
    ]

    sums = add_up(calls, packaged_prices())

    written = (1_000 * 2 + 4_000 * 2.5 + 400 * 10) / 1e6
    read = (1_000 * 2 + 4_000 * 0.1 + 400 * 10) / 1e6
    assert (sums.calls, sums.unreported_calls, sums.unpriced_calls) == (4, 1, 1)
    assert (sums.input_tokens, sums.output_tokens) == (15_000, 1_200)
    assert (sums.cache_read_tokens, sums.cache_write_tokens) == (4_000, 4_000)
    assert sums.cost == pytest.approx(written + read)
    assert sums.saved == pytest.approx(2 * (5_000 * 2 + 400 * 10) / 1e6 - written - read)


def test_what_changes_cost_is_listed_by_source_the_dearest_first() -> None:
    changed = [
        replace(call(), changed_by="settings/世界观.md", lost_tokens=3_000),
        replace(call(), changed_by="rules/style.md", lost_tokens=1_000),
        replace(call(), changed_by="settings/世界观.md", lost_tokens=2_000),
        call(),
    ]

    found = lost_by_source(changed, packaged_prices())

    assert [(ref, sums.calls, sums.lost_tokens) for ref, sums in found] == [
        ("settings/世界观.md", 2, 5_000),
        ("rules/style.md", 1, 1_000),
    ]
    assert found[0][1].lost == pytest.approx(5_000 * (2 - 0.1) / 1e6)


def test_days_are_those_of_the_author() -> None:
    calls = [call(), call(NOVEMBER + 3_600_000)]

    here = group(calls, lambda one: day_of(one.at_ms), packaged_prices())
    there = group(calls, lambda one: day_of(one.at_ms, 480), packaged_prices())

    assert [key for key, _ in here] == ["2026-11-18", "2026-11-19"]
    assert [(key, sums.calls) for key, sums in there] == [("2026-11-19", 2)]


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
    (tmp_path / PRICES_FILE).write_bytes(OWN)

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
    (tmp_path / PRICES_FILE).write_bytes(content)

    with pytest.raises(DaemonError) as caught:
        read_prices(tmp_path)

    assert caught.value.code is code
    assert caught.value.details["file"] == PRICES_FILE
