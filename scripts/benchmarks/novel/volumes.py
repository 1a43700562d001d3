"""A shelf of volumes to search: the novel of ../shared/corpus, or a stand-in, and more of its kind.

Each further volume is the first with its ideographs exchanged for others about as common. So
nothing stands there twice, common words stay common, and whoever is rare stays rare.
"""

import random
from collections import Counter

from testing.retrieval_questions import chapters

ALIKE = 40


def shelf(volumes: int) -> dict[str, str]:
    """Give the texts of so many volumes by path; the first is the novel itself."""
    first = chapters()
    ranked = [c for c, _ in Counter("".join(first)).most_common() if "\u4e00" <= c <= "\u9fff"]
    texts: dict[str, str] = {}
    for volume in range(1, volumes + 1):
        exchange = _exchange(ranked, volume) if volume > 1 else {}
        for number, chapter in enumerate(first, start=1):
            texts[f"{volume:02}/{number:03}.md"] = chapter.translate(exchange)
    return texts


def _exchange(ranked: list[str], volume: int) -> dict[int, str]:
    rolls = random.Random(volume)
    exchange: dict[int, str] = {}
    for start in range(0, len(ranked), ALIKE):
        alike = ranked[start : start + ALIKE]
        exchange |= dict(zip(map(ord, alike), rolls.sample(alike, len(alike)), strict=True))
    return exchange
