"""`creonowd usage`: a table with bars, in both languages, and JSON for scripts."""

import json
from pathlib import Path

import anyio
import pytest

from creonowd.workspace.usage import UsageLedger, UsageRecord
from tests.cli.commands import creonowd

NOON = 1_794_960_000_000


def call(model: str, tokens: int, changed_by: str = "") -> UsageRecord:
    return UsageRecord(
        at_ms=NOON,
        project_id="prj_1",
        provider="openai",
        model=model,
        purpose="write",
        input_tokens=tokens,
        output_tokens=100,
        cache_read_tokens=tokens // 2,
        lost_tokens=1_000 if changed_by else 0,
        changed_by=changed_by,
    )


@pytest.fixture
def user_data(tmp_path: Path) -> Path:
    async def fill() -> None:
        ledger = UsageLedger(tmp_path)
        await ledger.record(call("gpt-5.4", 40_000, changed_by="rules/style.md\x1b[31m"))
        await ledger.record(call("gpt-5.4-mini", 40_000))
        await ledger.record(call("自家模型", 9_000))

    anyio.run(fill)
    return tmp_path


def test_a_table_has_sums_bars_and_what_is_not_counted(user_data: Path) -> None:
    shown = creonowd(user_data, "usage", "--by", "model", LC_ALL="en_GB.UTF-8")

    assert shown.returncode == 0, shown.stderr
    lines = shown.stdout.decode().splitlines()
    dear = next(line for line in lines if line.startswith("gpt-5.4 "))
    cheap = next(line for line in lines if line.startswith("gpt-5.4-mini"))
    assert lines[0].split() == (
        [
            "model",
            "calls",
            "input",
            "from",
            "cache",
            "to",
            "cache",
            "output",
            "cost",
            "saved",
            "lost",
        ]
    )
    assert dear.split()[1:6] == ["1", "40,000", "20,000", "0", "100"]
    assert dear.count("█") == 20
    assert 0 < cheap.count("█") < 20
    assert any(line.startswith("total") and "89,000" in line for line in lines)
    assert "Money is USD" in shown.stdout.decode()
    assert "1 calls used models without a price" in shown.stdout.decode()
    assert "Changes of rules/style.md\\x1b[31m: 1000 tokens" in shown.stdout.decode()


def test_it_speaks_chinese_and_names_days(user_data: Path) -> None:
    shown = creonowd(user_data, "usage", LC_ALL="zh_CN.UTF-8", TZ="UTC")

    text = shown.stdout.decode()
    assert "读自缓存" in text
    assert "2026-11-17" in text or "2026-11-18" in text


def test_json_is_for_scripts_and_days_bound_what_counts(user_data: Path) -> None:
    everything = creonowd(user_data, "usage", "--json", "--from", "2026-11-01")
    nothing = creonowd(user_data, "usage", "--to", "2026-10-31", LC_ALL="en_GB.UTF-8")

    assert json.loads(everything.stdout)["total"]["calls"] == 3
    assert nothing.stdout.decode() == "No call to a model is recorded.\n"


def test_days_that_no_calendar_of_a_system_has_bound_nothing(user_data: Path) -> None:
    wide = creonowd(user_data, "usage", "--json", "--from", "0001-01-01", "--to", "9999-12-31")

    assert json.loads(wide.stdout)["total"]["calls"] == 3


def test_a_day_that_is_none_and_prices_that_make_no_sense_are_errors(user_data: Path) -> None:
    bad_day = creonowd(user_data, "usage", "--from", "yesterday")
    (user_data / "prices.json").write_text("{", encoding="utf-8")
    bad_prices = creonowd(user_data, "usage", LC_ALL="en_GB.UTF-8")

    assert bad_day.returncode == 2
    assert b"write a day such as 2026-11-01" in bad_day.stderr
    assert bad_prices.returncode == 1
    assert b"prices.json cannot be understood" in bad_prices.stderr
