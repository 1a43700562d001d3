"""Context files beside ripgrep, `re` line by line and plain reads and writes.

`--quick` leaves out the 1 GB file.
"""

import asyncio
import gc
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from creonowd.clock import SystemClock
from creonowd.context_files.files import (
    ContextFiles,
    ConversationKey,
    FileRequest,
    NewFileInfo,
    Store,
)
from creonowd.context_files.lazy_files import built_in_recipes
from creonowd.context_files.records import Kind, NewFile, Origin, Record
from creonowd.context_files.search import GrepRequest, find_ripgrep
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from creonowd.storage import stored_files
from creonowd.workspace.projects import Projects
from testing.corpus import chinese, origin

MEBIBYTE = 1024 * 1024
WHERE = ConversationKey("prj_bench", "bench")
RUNS = 25
SMALL_FILES = 10_000


class Search(NamedTuple):
    """A search to measure."""

    name: str
    pattern: str
    case_sensitive: bool


SEARCHES = (
    Search("rare word", "NEEDLE-7F", case_sensitive=True),
    Search("rare Chinese word", "稀世奇珍", case_sensitive=True),
    Search("1 % of the lines", "ONEPERCENT", case_sensitive=True),
    Search("1 %, ignoring case", "onepercent", case_sensitive=False),
    Search("a pattern", r"ERROR \d+ .*超时", case_sensitive=True),
)


def main(argv: list[str]) -> None:
    """Measure everything and print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_measure(Path(folder), quick="--quick" in argv))


async def _measure(folder: Path, *, quick: bool) -> None:
    log = _log()
    with_ripgrep, without = _files(folder, "auto"), _files(folder, "off")
    put = await with_ripgrep.put(WHERE, log, NewFileInfo(Kind.ARTIFACT, "log", key="log"))
    path = folder / "context" / "bench" / "artifacts" / "tool" / "log.txt"
    which = FileRequest(WHERE, put.ref.id)
    lines = log.count(b"\n")
    print(f"A log of {len(log) / 1e6:.0f} MB, {lines} lines, of {origin()}.\n")
    await _measure_grep(with_ripgrep, without, which, path)
    await _measure_reads(folder, with_ripgrep, log)
    await _measure_puts(folder)
    if not quick:
        await _measure_memory(folder, log)


async def _measure_grep(
    with_ripgrep: ContextFiles, without: ContextFiles, which: FileRequest, path: Path
) -> None:
    program = find_ripgrep()
    print(
        "| grep, 50 results, 2 lines around | `rg --json` ms | ours with it | ours without | `re` by line |"
    )
    print("|---|---|---|---|---|")
    for search in SEARCHES:
        wanted = GrepRequest(search.pattern, search.case_sensitive, 50, 2)
        base, ours, scan = await _together(
            lambda s=search: _by_hand(program, s, path),
            lambda w=wanted: with_ripgrep.grep(which, w),
            lambda w=wanted: without.grep(which, w),
        )
        (lines,) = await _together(lambda s=search: _by_line(s, path), runs=2)
        ratios = " | ".join(f"{value / base:.2f} ×" for value in (ours, scan, lines))
        print(f"| {search.name} | {base * 1000:.1f} | {ratios} |")
    print()


async def _measure_reads(folder: Path, files: ContextFiles, log: bytes) -> None:
    print("| reading, ms | 1 MB file | 50 MB file | raw read of the same bytes | 50 MB ÷ raw |")
    print("|---|---|---|---|---|")
    small = (await files.put(WHERE, log[:MEBIBYTE], NewFileInfo(Kind.ARTIFACT, "small"))).ref.id
    large = (await files.put(WHERE, log, NewFileInfo(Kind.ARTIFACT, "log", key="log"))).ref.id
    raw = folder / "raw"
    raw.write_bytes(log)
    reads: list[tuple[str, Callable[[FileRequest], Awaitable[Any]], int]] = [
        ("tail of 200 lines, redacted", files.tail, 20_000),
        ("page of 8 KiB, redacted", lambda which: files.read(which, 0), 8192),
        ("page of 64 KiB, redacted", lambda which: files.read(which, 0, 65_536), 65_536),
    ]
    for name, read, length in reads:
        one, two, base = await _together(
            lambda read=read: read(FileRequest(WHERE, small)),
            lambda read=read: read(FileRequest(WHERE, large)),
            lambda length=length: _raw_read(raw, length),
            runs=50,
        )
        figures = f"{one * 1000:.2f} | {two * 1000:.2f} | {base * 1000:.3f} | {two / base:.0f} ×"
        print(f"| {name} | {figures} |")
    print()


async def _measure_puts(folder: Path) -> None:
    files = _files(folder / "puts", "off")
    content = "一行工具输出\n" * 20
    ours = plain = 0.0
    for number in range(SMALL_FILES):
        began = time.perf_counter()
        await files.put(WHERE, content, NewFileInfo(Kind.ARTIFACT, "small", key=f"call_{number}"))
        ours += time.perf_counter() - began
        if number % 10 == 0:
            began = time.perf_counter()
            await asyncio.to_thread(
                stored_files.replace, folder / f"plain-{number}", content.encode()
            )
            plain += 10 * (time.perf_counter() - began)
    began = time.perf_counter()
    listed = await _files(folder / "puts", "off").newest(WHERE, None, 50)
    loaded = time.perf_counter() - began
    print("| put of 10 000 small files | ms each | ÷ one plain write and sync |")
    print("|---|---|---|")
    print(f"| in order, each acknowledged when on disk | {ours / 10:.2f} | {ours / plain:.1f} × |")
    print(
        f"\nThe {SMALL_FILES} refs load in {loaded:.2f} s after a restart ({len(listed)} listed).\n"
    )


async def _measure_memory(folder: Path, log: bytes) -> None:
    files = _files(folder / "huge", "off")
    conversation = files.store.find_or_create(*WHERE)
    print("| growth of the process at its peak, MiB, without ripgrep | 50 MB file | 1 GB file |")
    print("|---|---|---|")
    new = NewFile(
        kind=Kind.HISTORY,
        origin=Origin.ARCHIVE,
        hint="log",
        mime_type="text/plain",
        recipe={"type": "host"},
    )
    records = [conversation.register(new) for _ in range(2)]

    def fill(record: Record, copies: int) -> None:
        with conversation.write_lazy_file(record) as file:
            for _ in range(copies):
                for place in range(0, len(log), MEBIBYTE):
                    file.write(log[place : place + MEBIBYTE])

    grown = [
        await _peak(lambda r=record, c=copies: asyncio.to_thread(fill, r, c))
        for record, copies in zip(records, (1, 20), strict=True)
    ]
    print(f"| making it, a MiB at a time | {grown[0]:.1f} | {grown[1]:.1f} |")
    ids = [record.id for record in records]
    asked: list[tuple[str, Callable[[FileRequest], Awaitable[Any]]]] = [
        ("grep, 1 % of the lines", lambda which: files.grep(which, GrepRequest("ONEPERCENT"))),
        ("tail", files.tail),
        ("page in the middle", lambda which: files.read(which, 25_000_000)),
    ]
    for name, ask in asked:
        peaks = [
            await _peak(lambda i=ref_id, ask=ask: ask(FileRequest(WHERE, i))) for ref_id in ids
        ]
        print(f"| {name} | {peaks[0]:.1f} | {peaks[1]:.1f} |")


def _files(folder: Path, ripgrep: str) -> ContextFiles:
    folder.mkdir(exist_ok=True)
    clock = SystemClock()
    settings = Settings(ripgrep=ripgrep, grep_timeout_ms=60_000)
    recipes = built_in_recipes(Projects(folder, clock))
    return ContextFiles(Store(folder, clock), settings, recipes, Redactor(home=Path.home()))


def _log() -> bytes:
    lines = [line[:60] for line in chinese().splitlines() if line.strip()]
    made: list[str] = []
    size = number = 0
    while size < 50_000_000:
        line = f"2024-05-01T12:00:{number % 60:02d} INFO {number} {lines[number % len(lines)]}"
        line += " ONEPERCENT" if number % 100 == 0 else ""
        line += f" ERROR {number} 连接超时" if number % 1000 == 7 else ""
        line += " NEEDLE-7F 稀世奇珍" if number % 100_000 == 77_777 else ""
        made.append(line)
        size += len(line.encode()) + 1
        number += 1
    return "\n".join(made).encode() + b"\n"


async def _by_hand(program: Path | None, search: Search, path: Path) -> None:
    await asyncio.to_thread(_run_by_hand, program, search, path)


def _run_by_hand(program: Path | None, search: Search, path: Path) -> None:
    assert program is not None, "this bench compares with ripgrep: install the extra `ripgrep`"
    case = "--case-sensitive" if search.case_sensitive else "--ignore-case"
    command = [program, "--no-config", "-uu", "--json", "-C2", case, search.pattern, path]
    subprocess.run(command, capture_output=True, check=True)


async def _by_line(search: Search, path: Path) -> None:
    pattern = re.compile(search.pattern, 0 if search.case_sensitive else re.IGNORECASE)
    with path.open(encoding="utf-8", newline="\n") as file:
        sum(1 for line in file if pattern.search(line))


async def _raw_read(path: Path, length: int) -> None:
    with path.open("rb") as file:
        file.seek(-length, 2)
        file.read(length)


async def _together(*works: Callable[[], Awaitable[Any]], runs: int = RUNS) -> list[float]:
    """Return the best time of each; they take turns, so that no other load favours one of them."""
    best = [float("inf")] * len(works)
    for _ in range(runs):
        for place, work in enumerate(works):
            began = time.perf_counter()
            await work()
            best[place] = min(best[place], time.perf_counter() - began)
    return best


async def _peak(work: Callable[[], Awaitable[Any]]) -> float:
    """Return by how many MiB the process grows at most while it works."""
    gc.collect()
    process = psutil.Process()
    before = highest = process.memory_info().rss
    ended = threading.Event()

    def watch() -> None:
        nonlocal highest
        while not ended.wait(0.002):
            highest = max(highest, process.memory_info().rss)

    watching = asyncio.create_task(asyncio.to_thread(watch))
    await work()
    ended.set()
    await watching
    return (highest - before) / MEBIBYTE
