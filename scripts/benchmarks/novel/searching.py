"""What searching a shelf costs, beside looking through the same text in memory for the same words."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event

from creonowd.channels.sources import USUAL_LIMIT
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.retrieval.bm25 import search
from creonowd.retrieval.database import Database
from creonowd.retrieval.project_index import IndexScope, refresh
from creonowd.retrieval.query import make_query
from creonowd.retrieval.ranking import Ranked, rank
from creonowd.sources.passage_source import MOST_PASSAGES
from scripts.benchmarks.novel.crowd import percentile

ROUNDS = 5
EDITS = 9

Timed = tuple[float, float]


class Searched(Model):
    """Seconds, p50 and p99: for names and words, for whole sentences, for a change of one document."""

    scan: float
    query: Timed
    sentence_scan: float
    sentence: Timed
    update: Timed


def measure(
    database: Database, root: Path, texts: dict[str, str], queries: tuple[list[str], list[str]]
) -> Searched:
    """Ask for single words and for sentences; then change a chapter and have it indexed again."""
    text = "".join(texts.values())
    words, sentences = queries
    scans = _times(words, text.count)
    each = _times(sentences, lambda said: [text.count(t) for t in make_query("", said).weights])
    return Searched(
        scan=percentile(scans, 0.5),
        query=_shares(_times(words, lambda word: answers(database, word))),
        sentence_scan=percentile(each, 0.5),
        sentence=_shares(_times(sentences, lambda said: answers(database, said))),
        update=_shares(_updates(database, root, texts)),
    )


def answers(database: Database, query: str, limit: int = USUAL_LIMIT) -> list[Ranked]:
    """Search as `context:retrieve` does."""
    with database.reading() as connection:
        found = search(connection, make_query("", query).weights, 2 * limit + MOST_PASSAGES)
    return rank(found, None, limit)


def _times(queries: Sequence[str], ask: Callable[[str], object]) -> list[float]:
    """Time each query, the best of a few rounds: what else this machine does is not its cost."""
    rounds = [[_timed(ask, query) for query in queries] for _ in range(ROUNDS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def _timed(ask: Callable[[str], object], query: str) -> float:
    began = time.perf_counter()
    ask(query)
    return time.perf_counter() - began


def _updates(database: Database, root: Path, texts: dict[str, str]) -> list[float]:
    """Write a sentence into the middle of a chapter, again and again."""
    path = sorted(texts)[len(texts) // 2]
    half = len(texts[path]) // 2
    times: list[float] = []
    for turn in range(EDITS):
        said = f"\r\n　　她想起第{turn}夜的雨。\r\n"
        changed = texts[path][:half] + said + texts[path][half:]
        (root / path).write_bytes(changed.encode())
        scene = IndexScope(
            root=root, now_ms=time.time_ns() // 1_000_000, held={}, finder=Redactor()
        )
        began = time.perf_counter()
        refresh(database, scene, lambda _done, _all: None, Event())
        times.append(time.perf_counter() - began)
    return times


def _shares(times: list[float]) -> Timed:
    return percentile(times, 0.5), percentile(times, 0.99)
