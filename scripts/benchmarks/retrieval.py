"""How well passages are found, and what that costs beside a plain scan of the same text.

The novel and the questions are those of ../shared/corpus; without it a stand-in is searched and
the first line says so. 25 MB are ten volumes of its kind, see `novel.volumes`. A daemon builds
the index while an author asks for assemblies; then its file is searched here. `--quick` leaves
the 25 MB out.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import psutil

from creonowd.cli.client import Client, connect
from creonowd.context.mentions import Mentions
from creonowd.model import Model
from creonowd.retrieval.database import Database
from creonowd.retrieval.indexes import FOLDER
from scripts.benchmarks.novel.crowd import percentile
from scripts.benchmarks.novel.searching import Searched, answers, measure
from scripts.benchmarks.novel.volumes import shelf
from testing.retrieval_questions import CORPUS, QUESTIONS
from testing.retrieval_questions import measure as recall

BOTH = "names and places"
KINDS = ("name", "place", "word", "event", "paraphrase")
HERE = "01/042.md"
PAUSE_SECONDS = 0.05
TURNS = 60
MEGABYTE = 1 << 20


class Lived(Model):
    """What a daemon went through: seconds, bytes, and how long assemblies took meanwhile and after."""

    built: float
    grown: int
    meanwhile: list[float]
    after: list[float]


class Column(Model):
    """One size of text."""

    texts: dict[str, str]
    index_bytes: int
    lived: Lived
    searched: Searched


def main(argv: list[str]) -> None:
    """Print how well, then what it costs."""
    print(f"texts: {'corpus' if CORPUS.is_file() else 'a stand-in'}\n")
    sizes = (1,) if "--quick" in argv else (1, 10)
    _costs([_column(volumes) for volumes in sizes])


def _column(volumes: int) -> Column:
    texts = shelf(volumes)
    with tempfile.TemporaryDirectory() as folder:
        root, user_data = Path(folder) / "小说", Path(folder) / "user data"
        for path, text in texts.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(text.encode())
        with connect(user_data) as client:
            lived = _live(client, root)
        file = max((user_data / FOLDER).iterdir(), key=lambda file: file.stat().st_size)
        size = file.stat().st_size
        database = Database(file)
        database.open()
        if volumes == 1:
            _quality(database)
        searched = measure(database, root, texts, (_asked(KINDS[:3]), _asked(KINDS[3:])))
        database.close()
    return Column(texts=texts, index_bytes=size, lived=lived, searched=searched)


def _live(client: Client, root: Path) -> Lived:
    """Have an empty project, then this one; assemble here and there until the index is built."""
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
    built = time.perf_counter() - began
    after = [_assemble(client, root, turn)[0] for turn in range(TURNS)]
    grown = process.memory_info().rss - before
    return Lived(built=built, grown=grown, meanwhile=meanwhile, after=after)


def _assemble(client: Client, root: Path, turn: int) -> tuple[float, bool]:
    """Assemble in some chapter; tell the seconds and whether the index was complete."""
    place = {"documentId": f"01/{turn + 1:03}.md", "cursorPosition": 1500, "skillId": "bench"}
    payload = {"projectId": _project(client, root), **place}
    began = time.perf_counter()
    result = client.request("context:assemble", payload)
    spent = time.perf_counter() - began
    return spent, not any(w.startswith("RETRIEVAL_INDEXING") for w in result["warnings"])


def _wait(client: Client, root: Path) -> None:
    place = {"documentId": HERE, "cursorPosition": 0, "query": "雨", "limit": 1}
    patient = {"wait": True, "_meta": {"timeoutMs": 600_000}}
    client.request("context:retrieve", {"projectId": _project(client, root), **place, **patient})


def _project(client: Client, root: Path) -> Any:
    return client.request("project:create", {"rootPath": str(root)})["projectId"]


def _asked(kinds: tuple[str, ...]) -> list[str]:
    return [question.query for question in QUESTIONS if question.kind in kinds]


def _quality(database: Database) -> None:
    print("| questions | asked | recall@5 | recall@20 | MRR | goal |\n|---|---|---|---|---|---|")
    groups = [(f"{kind}s", (kind,)) for kind in KINDS]
    for name, kinds in (*groups, (BOTH, KINDS[:2]), ("all", KINDS)):
        asked = [question for question in QUESTIONS if question.kind in kinds]
        got = recall(asked, lambda query: _chapters(database, query))
        goal = "recall@20 ≥ 95 %" if name == BOTH else "–"
        shares = f"{got.recall_at_5:.1%} | {got.recall_at_20:.1%} | {got.reciprocal_rank:.2f}"
        print(f"| {name} | {got.asked} | {shares} | {goal} |")
    print(flush=True)


def _chapters(database: Database, query: str) -> list[int]:
    return [int(Path(one.found.path).stem) for one in answers(database, query)]


def _costs(columns: list[Column]) -> None:
    sizes = [sum(len(t.encode()) for t in column.texts.values()) for column in columns]
    heads = (f"{size / 1e6:.1f} MB" for size in sizes)
    print(f"| ÷ a scan of the same text | {' | '.join(heads)} | goal |")
    print("|---|" + "---|" * (len(columns) + 1))
    all_searched = [column.searched for column in columns]
    _row("a scan for one word", [f"{1000 * s.scan:.2f} ms" for s in all_searched])
    built = [f"{c.lived.built / c.searched.scan:.0f} ({c.lived.built:.1f} s)" for c in columns]
    _row("building the index, an author at work", built)
    _row(
        "a query for a word: p50",
        [_ratio(s.query[0], s.scan) for s in all_searched],
        "≤ 0.5; ≤ 0.1",
    )
    _row("a query for a word: p99", [_ratio(s.query[1], s.scan) for s in all_searched])
    for number, name in enumerate(("p50", "p99")):
        shares = [_ratio(s.sentence[number], s.sentence_scan) for s in all_searched]
        _row(f"a query for a sentence ÷ scans for its terms: {name}", shares)
    _row("indexing a changed chapter: p50", [_ratio(s.update[0], s.scan) for s in all_searched])
    _row("indexing a changed chapter: p99", [_ratio(s.update[1], s.scan) for s in all_searched])
    files = [f"{c.index_bytes / size:.2f}" for c, size in zip(columns, sizes, strict=True)]
    _row("index ÷ text, in bytes", files)
    for share in (0.5, 0.95):
        waits = [
            _ratio(percentile(c.lived.meanwhile, share), percentile(c.lived.after, share))
            for c in columns
        ]
        _row(f"an assembly while the index is built ÷ after: p{100 * share:.0f}", waits)
    grown = [f"+{c.lived.grown / MEGABYTE:.0f} MB" for c in columns]
    _row("memory that the index costs the daemon", grown, "does not grow")
    _names(next(iter(columns)).texts[HERE])


def _names(chapter: str) -> None:
    names = [
        f"{surname}{given}"
        for surname in "林苏沈周陈顾陆江叶许"
        for given in "远晴禾山青一二三四五"
    ]

    def timed(times: int, work: Any) -> float:
        began = time.perf_counter()
        for _ in range(times):
            work()
        return (time.perf_counter() - began) / times

    found = timed(9, lambda: Mentions().find(names, chapter))
    looked = timed(9, lambda: [name in chapter for name in names])
    print(
        f"\n100 names in a chapter: {1000 * found:.2f} ms, {found / looked:.2f} × one `in` for each."
    )


def _ratio(one: float, other: float) -> str:
    return f"{one / other:.2f}"


def _row(what: str, values: list[str], goal: str = "–") -> None:
    print(f"| {what} | {' | '.join(values)} | {goal} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
