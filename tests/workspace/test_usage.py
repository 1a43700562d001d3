"""The record of calls: kept over a restart, readable after a kill, and golden sums."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from creonowd.workspace.prices import packaged_prices
from creonowd.workspace.usage import (
    FOLDER,
    UsageLedger,
    UsageRecord,
    add_up,
    day_of,
    group,
    lost_by_source,
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

    assert await restarted.between(0, FOREVER) == calls
    assert await restarted.between(calls[1].at_ms, calls[2].at_ms) == calls[1:2]
    assert len(list((tmp_path / FOLDER).iterdir())) == 3


async def test_a_line_that_a_kill_tore_costs_itself_only(tmp_path: Path) -> None:
    await UsageLedger(tmp_path).record(call())
    (file,) = (tmp_path / FOLDER).iterdir()
    file.write_bytes(file.read_bytes() + file.read_bytes()[:40])

    restarted = UsageLedger(tmp_path)
    await restarted.record(call(NOVEMBER + 1))

    assert await restarted.between(0, FOREVER) == [call(), call(NOVEMBER + 1)]


async def test_lines_of_a_newer_daemon_and_other_files_are_left_alone(tmp_path: Path) -> None:
    await UsageLedger(tmp_path).record(call())
    (file,) = (tmp_path / FOLDER).iterdir()
    newer = file.read_bytes().replace(b'"atMs"', b'"version":2,"atMs"') + b"\xff\n[[\n"
    file.write_bytes(file.read_bytes() + newer)
    (tmp_path / FOLDER / "notes.jsonl").write_text("{}", encoding="utf-8")
    (tmp_path / FOLDER / "2026-12.jsonl").mkdir()

    assert await UsageLedger(tmp_path).between(0, FOREVER) == [call()]
    assert newer in file.read_bytes()


async def test_months_that_are_too_old_go(tmp_path: Path) -> None:
    ledger = UsageLedger(tmp_path)
    await ledger.record(call(NOVEMBER - 800 * DAY))
    await ledger.record(call(NOVEMBER - 700 * DAY))

    await ledger.record(call())

    assert len(await ledger.between(0, FOREVER)) == 2


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


def test_what_changes_cost_is_told_by_source_the_dearest_first() -> None:
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
