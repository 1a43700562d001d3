"""Time the turns of one contestant of `scripts/bench peers`.

Runs in the peers' own environment too: imports the standard library only.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Protocol

FRESH_STARTS = 3
PASSAGE_TOKENS = 260


class Chunk(NamedTuple):
    """One candidate; the higher its score, the sooner it is kept."""

    id: str
    text: str
    score: float


class Work(NamedTuple):
    """What every contestant gets: instructions, candidates, and the manuscript of each turn.

    `passages` are a story longer than every budget; each turn adds one of them.
    """

    system: str
    chunks: list[Chunk]
    manuscripts: list[str]
    budgets: list[int]
    passages: list[str]

    def characters(self) -> int:
        """Count the characters of all turns."""
        always = len(self.system) + sum(len(chunk.text) for chunk in self.chunks)
        return sum(always + len(manuscript) for manuscript in self.manuscripts)

    def story(self, budget: int, turn: int) -> list[str]:
        """Return the story so far: a little more than the budget, and a passage more every turn."""
        return self.passages[: budget // PASSAGE_TOKENS + turn]


class PackedPrompt(NamedTuple):
    """A contestant's result: the prompt, and what it reports about its size and what it dropped."""

    prompt: str
    reported: int | None = None
    dropped: list[str] | None = None


class Contestant(Protocol):
    """Fits the work into a budget; may cache what it likes between turns."""

    @property
    def tokenised(self) -> int:
        """How many characters it has tokenised so far."""
        ...

    def turn(self, manuscript: str) -> PackedPrompt:
        """Make a prompt of the candidates and this manuscript."""
        ...

    def continue_story(self, story: list[str]) -> str:
        """Make a prompt of the end of a story that is longer than the budget."""
        ...


def measure(work: Work, fresh: Callable[[int], Contestant]) -> list[dict[str, Any]]:
    """Time all turns for every budget; cold is the first turn of several fresh starts."""
    return [_measure(work, budget, fresh) for budget in work.budgets]


def _measure(work: Work, budget: int, fresh: Callable[[int], Contestant]) -> dict[str, Any]:
    others = [_time_turn(fresh(budget), work.manuscripts[0])[0] for _ in range(FRESH_STARTS - 1)]
    contestant = fresh(budget)
    cold, first = _time_turn(contestant, work.manuscripts[0])
    rest = [_time_turn(contestant, manuscript) for manuscript in work.manuscripts[1:]]
    return {
        "budget": budget,
        "cold": statistics.median([cold, *others]),
        "warm": statistics.median(milliseconds for milliseconds, _ in rest),
        "tokenised": contestant.tokenised / work.characters(),
        "packed": [first, *(packed for _, packed in rest)],
        "stories": [contestant.continue_story(work.story(budget, n)) for n in range(len(rest) + 1)],
    }


def _time_turn(contestant: Contestant, manuscript: str) -> tuple[float, PackedPrompt]:
    began = time.perf_counter()
    packed = contestant.turn(manuscript)
    return 1000 * (time.perf_counter() - began), packed


def main(make: Callable[[Work, int], Contestant]) -> None:
    """Read the work from the file of the first argument, write the results to that of the second."""
    given = json.loads(Path(sys.argv[1]).read_bytes())
    system, chunks, *rest = given
    work = Work(system, [Chunk(*chunk) for chunk in chunks], *rest)
    results = measure(work, lambda budget: make(work, budget))
    Path(sys.argv[2]).write_text(json.dumps(results), encoding="utf-8")
