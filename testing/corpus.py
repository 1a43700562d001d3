"""Long texts: the two novels of ../shared/corpus, or made-up prose of about their size."""

import random
import re
from collections.abc import Sequence
from pathlib import Path

CORPUS = Path(__file__).resolve().parents[2] / "shared" / "corpus"

_IDEOGRAPHS = "雨门灯人影风夜花酒书路桥山水船马剑声泪梦雪月窗帘石阶檐钟茶琴"
_WORDS = "the rain lamp gate river night old letter sister garden slowly never came and spoke of"


def origin() -> str:
    """Name where the texts are from."""
    return "../shared/corpus" if CORPUS.is_dir() else "made-up prose"


def chinese() -> str:
    """Return the text of a Chinese novel."""
    if text := _read("hongloumeng.txt"):
        return text
    return _made_up(list(_IDEOGRAPHS), "", "。", 5000)


def english() -> str:
    """Return the text of an English novel."""
    if text := _read("pride-and-prejudice.txt"):
        return text
    return _made_up(_WORDS.split(), " ", ". ", 850)


def english_chapters(count: int = 40, length: int = 9000) -> dict[str, str]:
    """Return the files of an English novel of so many chapters, in the order of the text."""
    prose = re.sub(r"\bChapter \d+", "", english())
    size = len(prose) // count
    parts = (prose[number * size :][:length].strip() for number in range(count))
    return {
        f"chapters/{number:02}.md": f"# Chapter {number}\n\n{part}\n"
        for number, part in enumerate(parts, 1)
    }


def _read(name: str) -> str:
    path = CORPUS / name
    return path.read_bytes().decode("utf-8").replace("\r\n", "\n") if path.is_file() else ""


def _made_up(words: Sequence[str], joint: str, end: str, paragraphs: int) -> str:
    """Return paragraphs of a few sentences each, as long as those of a novel; always the same."""
    chance = random.Random(7)
    made = (
        "".join(
            joint.join(chance.choices(words, k=chance.randint(8, 30))) + end
            for _ in range(chance.randint(1, 16))
        )
        for _ in range(paragraphs)
    )
    return "\n".join(made)
