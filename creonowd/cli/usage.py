"""`creonowd usage` — what calls to models used and cost, as a table with bars."""

import argparse
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import Any

from creonowd.cli.client import connect, pad, show, terminal_safe, width, write
from creonowd.errors import Language, Wording
from creonowd.settings import console_language, user_data_dir

BAR_WIDTH = 20
# Windows has no local time before 1970 and after the year 3000, and nothing was recorded then.
FIRST_DAY = date(1970, 1, 2)
LAST_DAY = date(2999, 12, 30)
KEYS = ("day", "project", "skill", "model", "purpose")
LONGEST_KEY = 40
MOST_LOST = 5

UsageReply = dict[str, Any]


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "usage",
        parents=[shared],
        description="Show what calls to models used, what they cost by the price list, and what "
        "the prompt cache saved. Put your own prices into prices.json in the user-data folder.",
    )
    parser.add_argument("--by", choices=KEYS, default="day", help="(default: day)")
    parser.add_argument("--from", dest="since", type=_day, metavar="DAY", help="such as 2026-11-01")
    parser.add_argument("--to", dest="until", type=_day, metavar="DAY", help="the last day")
    parser.add_argument("--json", action="store_true", help="the whole result, for scripts")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask for the sums and print them."""
    offset = datetime.now().astimezone().utcoffset() or timedelta()
    payload: UsageReply = {
        "groupBy": arguments.by,
        "utcOffsetMinutes": int(offset.total_seconds() // 60),
    }
    if arguments.since is not None:
        payload["from"] = _milliseconds(arguments.since)
    if arguments.until is not None:
        payload["to"] = _milliseconds(min(arguments.until, LAST_DAY) + timedelta(days=1))
    with connect(user_data_dir(arguments.user_data)) as client:
        report = client.request("ai:usage", payload)
    if arguments.json:
        show(report)
    else:
        chinese = console_language() is Language.CHINESE
        write("".join(_lines(terminal_safe(report), chinese=chinese)))
    return 0


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("write a day such as 2026-11-01") from None


def _milliseconds(day: date) -> int:
    """Return when a day begins here, or the nearest day for which every system knows that."""
    known = max(FIRST_DAY, min(day, LAST_DAY + timedelta(days=1)))
    begins = datetime(known.year, known.month, known.day).astimezone()
    return int(begins.timestamp() * 1000)


def _lines(report: UsageReply, *, chinese: bool) -> Iterator[str]:
    if not report["groups"]:
        yield f"{_NOTHING.text(chinese=chinese)}\n"
        return
    headings = [word.text(chinese=chinese) for word in _HEADINGS]
    rows = [*(_row(group["key"] or "–", group) for group in report["groups"])]
    table = [
        [report["groupBy"], *headings],
        *rows,
        _row(_TOTAL.text(chinese=chinese), report["total"]),
    ]
    widths = [max(map(width, column)) for column in zip(*table, strict=True)]
    heaviest = max(map(_weight, report["groups"])) or 1
    bars = ["", *(_bar(_weight(group) / heaviest) for group in report["groups"]), ""]
    for cells, bar in zip(table, bars, strict=True):
        first, *others = cells
        padded = [pad(first, widths[0])]
        padded += [
            pad(cell, columns, right=True) for cell, columns in zip(others, widths[1:], strict=True)
        ]
        yield f"{'  '.join([*padded, bar]).rstrip()}\n"
    yield from _notes(report, chinese=chinese)


def _row(key: str, sums: UsageReply) -> list[str]:
    short = key if len(key) <= LONGEST_KEY else f"{key[: LONGEST_KEY - 1]}…"
    counts = ("calls", "inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
    money = ("cost", "saved", "lost")
    return [short, *(f"{sums[name]:,}" for name in counts), *(f"{sums[n]:.4f}" for n in money)]


def _notes(report: UsageReply, *, chinese: bool) -> Iterator[str]:
    total = report["total"]
    prices = _PRICES.format(report["currency"], report["pricesAsOf"])
    yield f"{prices.text(chinese=chinese)}\n"
    for lost in report["lostTo"][:MOST_LOST]:
        wording = _LOST.format(lost["sourceRef"], lost["tokens"], lost["calls"])
        yield f"{wording.text(chinese=chinese)}\n"
    if total["unpricedCalls"]:
        yield f"{_UNPRICED.format(total['unpricedCalls']).text(chinese=chinese)}\n"
    if total["unreportedCalls"]:
        yield f"{_UNREPORTED.format(total['unreportedCalls']).text(chinese=chinese)}\n"


def _weight(sums: UsageReply) -> float:
    """Return what a bar stands for: money, or tokens where there are no prices."""
    return sums["cost"] or (sums["inputTokens"] + sums["outputTokens"]) / 1e12


def _bar(share: float) -> str:
    return "█" * max(1, round(BAR_WIDTH * share)) if share > 0 else ""


_HEADINGS = (
    Wording("calls", "调用"),
    Wording("input", "输入"),
    Wording("from cache", "读自缓存"),
    Wording("to cache", "写入缓存"),
    Wording("output", "输出"),
    Wording("cost", "费用"),
    Wording("saved", "节省"),
    Wording("lost", "损失"),
)
_TOTAL = Wording("total", "合计")
_NOTHING = Wording("No call to a model is recorded.", "没有模型调用的记录。")
_PRICES = Wording(
    "Money is {} by the prices of {}; tokens are the providers' own counts.",
    "金额以 {} 计，价格截至 {}；token 数为服务商自己的计数。",
)
_LOST = Wording(
    "Changes of {}: {} tokens in {} calls could not come from the cache.",
    "{} 的改动：{} 个 token（{} 次调用）因此未能读自缓存。",
)
_UNPRICED = Wording(
    "{} calls used models without a price and are in no sum of money.",
    "{} 次调用的模型没有价格，未计入金额。",
)
_UNREPORTED = Wording(
    "Of {} calls the provider reported no counts.", "{} 次调用的服务商未报告 token 数。"
)
