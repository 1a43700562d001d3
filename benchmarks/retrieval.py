"""How well passages are found, and what that costs beside a plain scan of the same text.

The novel and the questions are those of ../shared/corpus; without it a stand-in is searched and
the first line says so. 25 MB are ten volumes: the novel itself and nine more of its kind. A daemon
builds the index while a client requests assemblies; then its file is searched here. `--quick`
leaves the 25 MB out.
"""

import random
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import psutil

from benchmarks.traffic import percentile
from creonowd.channels.sources import USUAL_LIMIT
from creonowd.cli.client import Client, connect
from creonowd.context.names import Mentions
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.retrieval.bm25 import search
from creonowd.retrieval.loaded_index import IndexLoader, LoadedIndex
from creonowd.retrieval.passages import Database, stored_texts
from creonowd.retrieval.project_index import FOLDER, IndexScope, refresh
from creonowd.retrieval.ranking import RankedPassage, choose, make_query, rank
from creonowd.sources.passage_source import MOST_PASSAGES
from testing.retrieval_questions import CORPUS, QUESTIONS, chapters, measure

BOTH = "names and places"
KINDS = ("name", "place", "word", "event", "paraphrase")
HERE = "01/042.md"
PAUSE_SECONDS = 0.05
TURNS = 60
MEGABYTE = 1 << 20
ROUNDS = 5
EDITS = 9
ALIKE = 40

P50AndP99 = tuple[float, float]


class Build(Model):
    """The build of an index: its seconds, the daemon's growth, assemblies meanwhile and after."""

    seconds: float
    growth: int
    meanwhile: list[float]
    after: list[float]


class Searches(Model):
    """Seconds of searches for words, for sentences, and of indexing one changed document."""

    scan: float
    query: P50AndP99
    sentence_scan: float
    sentence: P50AndP99
    update: P50AndP99


class Column(Model):
    """One size of text."""

    texts: dict[str, str]
    index_bytes: int
    build: Build
    read_growth: int
    searches: Searches


class OpenedIndex(NamedTuple):
    """An index file, and what is in memory of it."""

    database: Database
    loaded: LoadedIndex


def main(argv: list[str]) -> None:
    """Print how well, then what it costs."""
    print(f"Texts: {'../shared/corpus' if CORPUS.is_file() else 'a stand-in'}.\n")
    sizes = (1,) if "--quick" in argv else (1, 10)
    _costs([_column(volumes) for volumes in sizes])


def _column(volumes: int) -> Column:
    texts = _volumes(volumes)
    with tempfile.TemporaryDirectory() as folder:
        root, user_data = Path(folder) / "小说", Path(folder) / "user data"
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        with connect(user_data) as client:
            build = _build(client, root)
        with connect(user_data) as client:
            read_growth = _read_growth(client, root)
        file = max((user_data / FOLDER).iterdir(), key=lambda file: file.stat().st_size)
        size = file.stat().st_size
        database = Database(file)
        database.open()
        with database.read() as connection:
            opened = OpenedIndex(database, IndexLoader().load(connection))
        if volumes == 1:
            _quality(opened)
        searches = _search(opened, root, texts)
        database.close()
    return Column(
        texts=texts, index_bytes=size, build=build, read_growth=read_growth, searches=searches
    )


def _volumes(volumes: int) -> dict[str, str]:
    """Return the texts of so many volumes by path; the first is the novel itself.

    Each further volume is the first with its ideographs exchanged for others about as common: no
    passage occurs twice, common words stay common, and rare ones stay rare.
    """
    first = chapters()
    ranked = [c for c, _ in Counter("".join(first)).most_common() if "\u4e00" <= c <= "\u9fff"]
    texts: dict[str, str] = {}
    for volume in range(1, volumes + 1):
        exchange = _exchange(ranked, volume) if volume > 1 else {}
        for number, chapter in enumerate(first, start=1):
            texts[f"{volume:02}/{number:03}.md"] = chapter.translate(exchange)
    return texts


def _exchange(ranked: list[str], volume: int) -> dict[int, str]:
    chance = random.Random(volume)
    exchange: dict[int, str] = {}
    for start in range(0, len(ranked), ALIKE):
        alike = ranked[start : start + ALIKE]
        exchange |= dict(zip(map(ord, alike), chance.sample(alike, len(alike)), strict=True))
    return exchange


def _build(client: Client, root: Path) -> Build:
    """Open an empty project, then this one; assemble in several chapters until the index is built."""
    process = psutil.Process(client.request("app:ping")["pid"])
    empty = root.parent / "empty"
    empty.mkdir()
    _assemble(client, empty, 0)
    before, began = process.memory_info().rss, time.perf_counter()
    meanwhile: list[float] = []
    complete = False
    while not complete and len(meanwhile) < TURNS:
        spent, complete = _assemble(client, root, len(meanwhile))
        meanwhile.append(spent)
        time.sleep(PAUSE_SECONDS)
    _wait(client, root)
    seconds = time.perf_counter() - began
    after = [_assemble(client, root, turn)[0] for turn in range(TURNS)]
    growth = process.memory_info().rss - before
    return Build(seconds=seconds, growth=growth, meanwhile=meanwhile, after=after)


def _read_growth(client: Client, root: Path) -> int:
    """Return by how much a new daemon grows when it reads the index and assembles once."""
    process = psutil.Process(client.request("app:ping")["pid"])
    _assemble(client, root.parent / "empty", 0)
    before = process.memory_info().rss
    _assemble(client, root, 0)
    _wait(client, root)
    return process.memory_info().rss - before


def _assemble(client: Client, root: Path, turn: int) -> tuple[float, bool]:
    """Assemble in some chapter; return the seconds and whether the index was complete."""
    place = {"documentId": f"01/{turn + 1:03}.md", "cursorPosition": 1500, "skillId": "bench"}
    payload = {"projectId": _project(client, root), **place}
    began = time.perf_counter()
    result = client.request("context:assemble", payload)
    spent = time.perf_counter() - began
    return spent, not any(w.startswith("RETRIEVAL_INDEXING") for w in result["warnings"])


def _wait(client: Client, root: Path) -> None:
    place = {"documentId": HERE, "cursorPosition": 0, "query": "雨", "limit": 1}
    waiting = {"wait": True, "_meta": {"timeoutMs": 600_000}}
    client.request("context:retrieve", {"projectId": _project(client, root), **place, **waiting})


def _project(client: Client, root: Path) -> Any:
    return client.request("project:create", {"rootPath": str(root)})["projectId"]


def _search(index: OpenedIndex, root: Path, texts: dict[str, str]) -> Searches:
    """Search for single words and for sentences; then change a chapter and index it again."""
    text = "".join(texts.values())
    words, sentences = _queries(KINDS[:3]), _queries(KINDS[3:])
    scans = _times(words, text.count)
    each = _times(
        sentences, lambda sentence: [text.count(t) for t in make_query("", sentence).weights]
    )
    return Searches(
        scan=percentile(scans, 0.5),
        query=_shares(_times(words, lambda word: _answers(index, word))),
        sentence_scan=percentile(each, 0.5),
        sentence=_shares(_times(sentences, lambda sentence: _answers(index, sentence))),
        update=_shares(_updates(index.database, root, texts)),
    )


def _answers(index: OpenedIndex, query: str, limit: int = USUAL_LIMIT) -> list[RankedPassage]:
    """Search as `context:retrieve` does."""
    loaded = index.loaded
    found = search(loaded.terms, make_query("", query).weights, 2 * limit + MOST_PASSAGES)
    matches = list(zip(found.rows.tolist(), found.scores.tolist(), strict=True))
    groups = choose(matches, loaded, limit)
    with index.database.read() as connection:
        numbers = [loaded.rows[group.best.row].id for group in groups]
        return rank(groups, loaded, stored_texts(connection, numbers))


def _times(queries: Sequence[str], search: Callable[[str], object]) -> list[float]:
    """Return the best time of each query, so that other work of this machine does not count."""
    rounds = [[_seconds(search, query) for query in queries] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _seconds(search: Callable[[str], object], query: str) -> float:
    began = time.perf_counter()
    search(query)
    return time.perf_counter() - began


def _updates(database: Database, root: Path, texts: dict[str, str]) -> list[float]:
    """Insert a sentence into the middle of a chapter several times; the seconds to index each."""
    path = sorted(texts)[len(texts) // 2]
    half = len(texts[path]) // 2
    times: list[float] = []
    for turn in range(EDITS):
        inserted = f"\r\n　　她想起第{turn}夜的雨。\r\n"
        changed = texts[path][:half] + inserted + texts[path][half:]
        (root / path).write_bytes(changed.encode())
        scope = IndexScope(
            root=root, now_ms=time.time_ns() // 1_000_000, open_documents={}, finder=Redactor()
        )
        began = time.perf_counter()
        refresh(database, scope, lambda _done, _all: None, Event())
        times.append(time.perf_counter() - began)
    return times


def _shares(times: list[float]) -> P50AndP99:
    return percentile(times, 0.5), percentile(times, 0.99)


def _queries(kinds: tuple[str, ...]) -> list[str]:
    return [question.query for question in QUESTIONS if question.kind in kinds]


def _quality(index: OpenedIndex) -> None:
    print("| questions | asked | recall@5 | recall@20 | MRR | goal |\n|---|---|---|---|---|---|")
    groups = [(f"{kind}s", (kind,)) for kind in KINDS]
    for name, kinds in (*groups, (BOTH, KINDS[:2]), ("all", KINDS)):
        asked = [question for question in QUESTIONS if question.kind in kinds]
        got = measure(asked, lambda query: _chapters(index, query))
        goal = "recall@20 ≥ 95 %" if name == BOTH else "–"
        shares = f"{got.recall_at_5:.1%} | {got.recall_at_20:.1%} | {got.reciprocal_rank:.2f}"
        print(f"| {name} | {got.asked} | {shares} | {goal} |")
    print(flush=True)


def _chapters(index: OpenedIndex, query: str) -> list[int]:
    return [int(Path(one.found.path).stem) for one in _answers(index, query)]


def _costs(columns: list[Column]) -> None:
    sizes = [sum(len(t.encode()) for t in column.texts.values()) for column in columns]
    heads = (f"{size / 1e6:.1f} MB" for size in sizes)
    print(f"| ÷ a scan of the same text | {' | '.join(heads)} | goal |")
    print("|---|" + "---|" * (len(columns) + 1))
    all_searches = [column.searches for column in columns]
    _row("a scan for one word", [f"{1000 * s.scan:.2f} ms" for s in all_searches])
    built = [f"{c.build.seconds / c.searches.scan:.0f} ({c.build.seconds:.1f} s)" for c in columns]
    _row("building the index while an author works", built)
    _row(
        "a query for a word: p50",
        [_ratio(s.query[0], s.scan) for s in all_searches],
        "≤ 0.5; ≤ 0.1",
    )
    _row("a query for a word: p99", [_ratio(s.query[1], s.scan) for s in all_searches])
    for number, name in enumerate(("p50", "p99")):
        shares = [_ratio(s.sentence[number], s.sentence_scan) for s in all_searches]
        _row(f"a query for a sentence ÷ scans for its terms: {name}", shares)
    _row("indexing a changed chapter: p50", [_ratio(s.update[0], s.scan) for s in all_searches])
    _row("indexing a changed chapter: p99", [_ratio(s.update[1], s.scan) for s in all_searches])
    files = [f"{c.index_bytes / size:.2f}" for c, size in zip(columns, sizes, strict=True)]
    _row("index ÷ text, in bytes", files)
    for share in (0.5, 0.95):
        waits = [
            _ratio(percentile(c.build.meanwhile, share), percentile(c.build.after, share))
            for c in columns
        ]
        _row(f"an assembly while the index is built ÷ after: p{100 * share:.0f}", waits)
    growth = [f"+{c.build.growth / MEGABYTE:.0f} MB" for c in columns]
    _row(f"memory: index just built, assemblies in {TURNS} chapters", growth)
    growth = [f"+{c.read_growth / MEGABYTE:.0f} MB" for c in columns]
    _row("memory: index read after a restart, one assembly", growth, "≤ +64 MB")
    _names(next(iter(columns)).texts[HERE])


def _names(chapter: str) -> None:
    names = [
        f"{surname}{given}"
        for surname in "林苏沈周陈顾陆江叶许"
        for given in "远晴禾山青一二三四五"
    ]

    def best_time(times: int, work: Any) -> float:
        began = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - began) / times

    found = best_time(9, lambda: Mentions().find(names, chapter))
    looked = best_time(9, lambda: [name in chapter for name in names])
    print(
        f"\n100 names in a chapter: {1000 * found:.2f} ms, {found / looked:.2f} × one `in` for each."
    )


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}"


def _row(what: str, values: list[str], goal: str = "–") -> None:
    print(f"| {what} | {' | '.join(values)} | {goal} |", flush=True)
