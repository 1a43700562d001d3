"""The work that everyone is given: two hundred chunks and a manuscript that grows.

Made of the Chinese and the English novel of ../shared/corpus if they are there, and else of
made-up prose.
"""

import random
import re

from scripts.benchmarks.beside.walk import Chunk, Work
from scripts.benchmarks.novel.project import CORPUS, novel

CHUNKS = 200
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
    texts = [_pieces(novel(), _CHINESE_CHARS, rolls), _pieces(english(), _ENGLISH_CHARS, rolls)]
    chunks = [
        Chunk(f"notes/{number:03}.md", texts[number % 2][number // 2], rolls.randint(1, 9999) / 1e4)
        for number in range(CHUNKS)
    ]
    return Work(SYSTEM, chunks, _manuscripts(), BUDGETS)


def english() -> str:
    """Give the text of an English novel."""
    path = CORPUS / "pride-and-prejudice.txt"
    if path.is_file():
        return path.read_bytes().decode("utf-8").replace("\r\n", "\n")
    rolls = random.Random(8)
    lines = (" ".join(rolls.choices(_WORDS, k=rolls.randint(9, 60))) + "." for _ in range(9000))
    return "\n\n".join(lines)


def _pieces(text: str, size: tuple[int, int], rolls: random.Random) -> list[str]:
    """Cut a text into pieces that lie far apart."""
    step = len(text) // (CHUNKS // 2 + 20)
    starts = [step * number for number in range(10, CHUNKS // 2 + 10)]
    return [text[start : start + rolls.randint(*size)].strip() + "\n" for start in starts]


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
