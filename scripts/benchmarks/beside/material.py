"""The work that everyone is given: two hundred chunks and a manuscript that grows.

Made of the Chinese and the English novel of ../shared/corpus if they are there, and else of
made-up prose.
"""

import random
import re

from scripts.benchmarks.beside.walk import Chunk, Work
from scripts.benchmarks.novel.project import CORPUS, novel

CHUNKS = 200
PASSAGES = 270
TURNS = 30
BUDGETS = [8000, 32_000, 60_000]
SYSTEM = "You continue a novel. Keep the author's voice, tense and names; add no facts.\n"

_CHINESE_CHARS = (200, 370)
_ENGLISH_CHARS = (870, 1720)
_START = 130
_WORDS = [
    "the",
    "rain",
    "lamp",
    "gate",
    "river",
    "night",
    "old",
    "letter",
    "sister",
    "garden",
    "slowly",
    "never",
    "came",
    "and",
    "spoke",
    "of",
]


def work() -> Work:
    """Make the work: half of it English, half Chinese, scored at random but always alike."""
    rolls = random.Random(14)
    chunks = [
        Chunk(f"notes/{number:03}.md", text, rolls.randint(1, 9999) / 1e4)
        for number, text in enumerate(_pieces(CHUNKS, rolls))
    ]
    return Work(SYSTEM, chunks, _manuscripts(), BUDGETS, _pieces(PASSAGES, rolls))


def english() -> str:
    """Give the text of an English novel."""
    path = CORPUS / "pride-and-prejudice.txt"
    if path.is_file():
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    rolls = random.Random(8)
    lines = (" ".join(rolls.choices(_WORDS, k=rolls.randint(9, 60))) + "." for _ in range(9000))
    return "\n\n".join(lines)


def _pieces(count: int, rolls: random.Random) -> list[str]:
    """Cut pieces that lie far apart out of both novels by turns."""
    both = [(novel(), _CHINESE_CHARS), (english(), _ENGLISH_CHARS)]
    made: list[str] = []
    for number in range(count):
        text, size = both[number % 2]
        start = len(text) * (number + 10) // (count + 20)
        made.append(text[start : start + rolls.randint(*size)].strip() + "\n")
    return made


def _manuscripts() -> list[str]:
    """Write on, a sentence or two per turn, by turns in Chinese and in English."""
    both = zip(_sentences(novel(), "。"), _sentences(english(), "."), strict=False)
    paragraphs = [paragraph for pair in both for paragraph in pair][: _START + TURNS]
    return ["".join(paragraphs[: _START + turn + 1]) for turn in range(TURNS)]


def _sentences(text: str, end: str) -> list[str]:
    middle = text[len(text) // 2 : len(text) // 2 + 60_000]
    flat = re.sub(r"\s+", "" if end == "。" else " ", middle)
    return [
        f"{sentence.strip()}{end}\n" for sentence in flat.split(end)[1:-1] if len(sentence) > 20
    ]
