"""What an assembly costs, as ratios within this run; and seed 2's limits beside what was measured.

The project has 120 chapters, 200 settings files and 500 constraints, made of ../shared/corpus if
that is there and else of made-up prose; see `novel.project`.
"""

# requirement: CE-056, CE-057, CE-058, CE-066, CE-083, CE-084, CE-085, CE-086, CE-087

import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from hashlib import sha256
from itertools import cycle
from pathlib import Path

import anyio

from creonowd.context.assemble import compose
from creonowd.context.fragment import Fragment, Layer, Place
from creonowd.context.gather import Gathered
from creonowd.context.inspection import InspectMeta, inspect
from creonowd.context.result import Compared, ModelTarget
from creonowd.context.text_tools import Memory, TextTools
from creonowd.daemon.run import keep_freed_memory
from creonowd.tokens.cache import CountCache
from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer
from scripts.benchmarks.novel import crowd, writing
from scripts.benchmarks.novel.bare import bare_work
from scripts.benchmarks.novel.desk import DOCUMENT, REDACTOR, Desk, plan
from scripts.benchmarks.novel.project import CORPUS, make_project, novel

BUDGETS = (6000, 32_000, 60_000)
ROUNDS = 9
META = InspectMeta(debug_mode=True, requested_by="bench", requested_at=0, what_if=False)


def main(argv: list[str]) -> None:
    """Print one table; `--quick` leaves the crowd out."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "小说"
        text = novel()
        chapter = make_project(root, text)[41]
        print(f"texts: {'corpus' if CORPUS.is_dir() else 'made up'}\n")
        print("| what | measured | goal |\n|---|---|---|", flush=True)
        anyio.run(_measure, root, chapter, text)
        if "--quick" not in argv:
            anyio.run(_crowd, root, Path(folder) / "user data")


def _row(what: str, measured: str, goal: str) -> None:
    print(f"| {what} | {measured} | {goal} |", flush=True)


async def _measure(root: Path, chapter: str, text: str) -> None:
    keep_freed_memory()
    packaged_encoding("o200k_base").encode_ordinary(chapter)
    REDACTOR.redact(chapter)
    gc.freeze()  # As the daemon does when it has started.
    for total in BUDGETS:
        await _cold_and_warm(root, chapter, total)
    _growth(text)
    await _parts(root, chapter)
    for name, around in (("general profile", None), ("surrounding 2000", 2000)):
        await _writing(root, chapter, name, around)


async def _cold_and_warm(root: Path, chapter: str, total: int) -> None:
    texts = await _candidates(root, chapter)
    tables = packaged_encoding("o200k_base")
    tokens = len(tables.encode_ordinary(texts))
    cursor = len(chapter) * 3 // 4
    # Made before and kept: a daemon is not set up and taken down with every assembly.
    desks = [Desk(root) for _ in range(ROUNDS)]
    spent: list[tuple[float, float, float]] = []
    for desk in desks:
        # In turn, so that all three find the machine in the same state.
        counted = _seconds(lambda: tables.encode_ordinary(texts))
        bare = _seconds(lambda: bare_work(root, chapter, tables))
        (cold,) = await _times(lambda desk=desk: desk.answered(plan(chapter, cursor, total)), 1)
        spent.append((counted, bare, cold / 1000))
    once, bare, cold = (statistics.median(column) for column in zip(*spent, strict=True))
    desk = Desk(root)
    await desk.answered(plan(chapter, cursor, total))
    states = iter(range(1000))

    async def again() -> None:
        turn = next(states)
        changed = chapter[:cursor] + "她想起那夜的雨。" * (turn + 1) + chapter[cursor:]
        await desk.answered(plan(changed, cursor + 8 * (turn + 1), total))

    await again()
    warm = await _median_async(again)
    _row(f"{total} tokens: cold ÷ one count of its {tokens} tokens", f"{cold / once:.2f}", "≤ 1.5")
    _row("the same with nothing but reading, redacting, counting", f"{bare / once:.2f}", "–")
    _row(f"{total} tokens: warm ÷ cold", f"{warm / cold:.3f} ({1000 * warm:.1f} ms)", "≤ 0.1")


async def _candidates(root: Path, chapter: str) -> str:
    desk = Desk(root)
    assembly = await desk.assembled(plan(chapter, len(chapter), 60_000))
    return "\n".join([chapter, *(verdict.text for verdict in assembly.all_verdicts())])


def _growth(text: str) -> None:
    small, large = _median(lambda: _composed(text, 1000)), _median(lambda: _composed(text, 10_000))
    _row("10 000 chunks ÷ 1000 chunks", f"{large / small:.1f}", "≤ 11")
    few = _median(lambda: _composed(text, 20, Layer.SETTINGS))
    many = _median(lambda: _composed(text, 200, Layer.SETTINGS))
    _row("200 settings ÷ 20 settings", f"{many / few:.1f}", "≤ 11")


def _composed(text: str, count: int, layer: Layer = Layer.RETRIEVED) -> None:
    fragments = tuple(
        Fragment(
            layer=layer,
            source="bench",
            source_ref=f"{n}.md",
            text=text[n * 80 : n * 80 + 80],
            score=n % 97 / 97,
            place=Place(0, f"{n}"),
        )
        for n in range(count)
    )
    given = {each: fragments if each is layer else () for each in Layer}
    tokenizer = BpeTokenizer(packaged_encoding("o200k_base"), CountCache())
    compose(
        plan(text[:8000], 4000, 32_000),
        Gathered(fragments=given),
        TextTools(tokenizer, REDACTOR, Memory()),
    )


async def _parts(root: Path, chapter: str) -> None:
    desk = Desk(root)
    here = plan(chapter, len(chapter) // 2, 32_000)
    assembly = await desk.assembled(here)
    seen = await _times(lambda: _inspected(desk, chapter))
    _row("inspect, p95", f"{crowd.percentile(seen, 0.95):.1f} ms", "< 180 ms")
    desk.instruments.memory.layered.misses = 0

    async def budget() -> None:
        desk.instruments.memory.layered = Memory().layered
        await desk.assembled(here)

    spent = await _times(budget)
    shares = " / ".join(f"{crowd.percentile(spent, p):.1f}" for p in (0.5, 0.95, 0.99))
    cursors = cycle(range(100, len(chapter), 97))
    alone = await _times(lambda: desk.assembled(plan(chapter, next(cursors), 32_000)))
    _row(
        "assemble, one after the other, p50 / p95 / p99",
        " / ".join(f"{crowd.percentile(alone, p):.1f}" for p in (0.5, 0.95, 0.99)) + " ms",
        "< 120 / 250 / 500 ms",
    )
    _row("budget calculation anew, p50 / p95 / p99", f"{shares} ms", "< 30 / 80 / 150 ms")
    prompt = (assembly.stable.prompt.text + assembly.user.text).encode()

    async def hashed() -> None:
        sha256(prompt).hexdigest()

    _row("hash, p95", f"{crowd.percentile(await _times(hashed), 0.95):.2f} ms", "< 20 ms")


async def _inspected(desk: Desk, chapter: str) -> None:
    made = await desk.assembled(plan(chapter, len(chapter) // 3, 32_000))
    inspect(made, Compared(), ModelTarget(), META)


async def _writing(root: Path, chapter: str, name: str, around: int | None) -> None:
    for what, work, goal in (
        ("appending", writing.append, "≥ 90 %"),
        ("editing", writing.edit, "–"),
    ):
        reuse = await work(Desk(root), chapter, 6000, around)
        measured = f"{reuse.bytes:.1%} of bytes, {reuse.stable:.0%} of calls stable"
        _row(f"writing, {name}: {what}", measured, f"{goal} of bytes, 100 % of calls")


async def _crowd(root: Path, user_data: Path) -> None:
    async with crowd.daemon(sys.executable, user_data) as socket:
        project = (await crowd.ask(socket, "project:create", {"rootPath": str(root)}))["projectId"]
        asking = {
            "projectId": project,
            "skillId": "bench",
            "documentId": DOCUMENT,
            "cursorPosition": 9,
        }
        await crowd.ask(socket, "context:assemble", asking)
        documents = [
            f"chapters/{n % 120 + 1:03}.md" if n < 120 else f"new/{n}.md"
            for n in range(crowd.DOCUMENTS)
        ]
        payloads = [
            {**asking, "documentId": document, "cursorPosition": 500 * turn + 100}
            for turn in range(crowd.EACH)
            for document in documents
        ]
        for name in ("first time", "again"):
            latencies, replies = await crowd.crowd(socket, payloads)
            answered = sum("result" in reply for reply in replies)
            within = all(r["result"]["tokenCount"] <= 6000 for r in replies if "result" in r)
            short = sum(
                "UNAVAILABLE" in str(r["result"]["warnings"]) for r in replies if "result" in r
            )
            shares = " / ".join(f"{crowd.percentile(latencies, p):.0f}" for p in (0.5, 0.95, 0.99))
            _row(
                f"500 at once over 125 documents, {name}: p50 / p95 / p99",
                f"{shares} ms, {answered} answered, {short} lack a source, "
                f"budget {'kept' if within else 'BROKEN'}",
                "< 120 / 250 / 500 ms",
            )


def _median(work: Callable[[], object]) -> float:
    return statistics.median(_seconds(work) for _ in range(ROUNDS))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


async def _median_async(work: Callable[[], Awaitable[object]]) -> float:
    return statistics.median([each / 1000 for each in await _times(work, ROUNDS)])


async def _times(work: Callable[[], Awaitable[object]], rounds: int = 40) -> list[float]:
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        await work()
        times.append(1000 * (time.perf_counter() - started))
    return times
