"""Counting and cutting beside one `encode_ordinary` of the same text; a keystroke beside a copy."""

import random
import subprocess
import sys
import time
from collections.abc import Callable

from benchmarks.novel import chinese, english, origin
from creonowd.tokens import Tokenizers, keep_head, keep_tail
from creonowd.tokens.tables import ENCODINGS, KNOWN, packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer
from creonowd.workspace.buffer import Buffer, Edit
from scripts.environment import ROOT

LOADING = """
import sys, time, psutil
from creonowd.tokens import Tokenizers
import tiktoken
process = psutil.Process()
before, start = process.memory_info().rss, time.process_time()
counter = Tokenizers().load(sys.argv[1])
spent = time.process_time() - start
counter.count("a")
print(1000 * spent, (process.memory_info().rss - before) / 1e6)
"""
"""What a fresh process runs to load one table."""
LIMIT = 6000
ROUNDS = 15
STROKES = 20

Row = tuple[str, str, float]
Work = Callable[[], object]


def main(_argv: list[str]) -> None:
    """Print one row per thing measured."""
    novels = {"Chinese": chinese(), "English": english()}
    print(f"Texts: {origin()}; {len(novels['Chinese'])} code points of Chinese.\n")
    print("| table | load, ms of processor | memory, MB | Chinese, code points per token |")
    print("|---|---|---|---|")
    for name in sorted(KNOWN):
        _print_table(name, novels["Chinese"][:200_000])
    print("\n| what | measured against | ratio |\n|---|---|---|")
    for encoding in ENCODINGS:
        for language, text in novels.items():
            _print(_counting(encoding, language, text))
    _print(_typing((novels["Chinese"] * 4)[:1_100_000]))


def _print_table(name: str, text: str) -> None:
    command = [sys.executable, "-c", LOADING, name]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    load, memory = map(float, ran.stdout.split())
    density = len(text) / Tokenizers().load(name).count(text)
    print(f"| {name} | {load:.0f} | {memory:.0f} | {density:.2f} |", flush=True)


def _print(rows: list[Row]) -> None:
    for what, against, ratio in rows:
        print(f"| {what} | {against} | {ratio:.3f} |", flush=True)


def _counting(encoding: str, language: str, text: str) -> list[Row]:
    tables = packaged_encoding(encoding)
    tokenizer = BpeTokenizer(tables)
    kept = text[: keep_head(text, LIMIT, tokenizer).at]

    def whole() -> object:
        return tables.encode_ordinary(text)

    def part() -> object:
        return tables.encode_ordinary(kept)

    def cut_head() -> object:
        return keep_head(text, LIMIT, tokenizer)

    def cut_tail() -> object:
        return keep_tail(text, LIMIT, tokenizer)

    name, against = f"{encoding}, {language}", f"one encode of the {LIMIT} tokens kept"
    return [
        (f"{name}: count", "one encode of it", _ratio(lambda: tokenizer.count(text), whole)),
        (f"{name}: cut head", "one encode of it", _ratio(cut_head, whole)),
        (f"{name}: cut head", against, _ratio(cut_head, part)),
        (f"{name}: cut tail", against, _ratio(cut_tail, part)),
    ]


def _typing(text: str) -> list[Row]:
    against = f"copying the text ({len(text.encode()) / 1e6:.1f} MB in UTF-8) once"
    halves = (text[: len(text) // 2], text[len(text) // 2 :])
    buffer, place = Buffer.of(text), random.Random(1)
    strokes = [
        [Edit(start=at, end=at, text="字")]
        for at in (place.randrange(len(text)) for _ in range(STROKES))
    ]

    def copy() -> object:
        return ["".join(halves) for _ in range(STROKES)]

    def type_in(*, utf16: bool) -> Work:
        return lambda: [buffer.apply(stroke, utf16=utf16) for stroke in strokes]

    def sync_whole() -> object:
        return [Buffer.of(text) for _ in range(STROKES)]

    return [
        ("sync one keystroke, code points", against, _ratio(type_in(utf16=False), copy)),
        ("sync one keystroke, UTF-16", against, _ratio(type_in(utf16=True), copy)),
        ("sync the whole text", against, _ratio(sync_whole, copy)),
    ]


def _ratio(work: Work, against: Work) -> float:
    """Divide the best times of both; they take turns, so that no other load favours one of them."""
    pairs = [(_seconds(work), _seconds(against)) for _ in range(ROUNDS)]
    return min(one for one, _ in pairs) / min(other for _, other in pairs)


def _seconds(work: Work) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
