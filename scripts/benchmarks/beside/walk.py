"""Thirty growing turns through one contestant, timed. Knows neither us nor any peer.

Runs in the peers' own environment too: the standard library only.
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
    """One candidate; the higher its score, the rather it stays."""

    id: str
    text: str
    score: float


class Work(NamedTuple):
    """What everyone is given: instructions, candidates, and the manuscript turn by turn.

    `passages` are a story that outgrows every budget; a turn adds one of them.
    """

    system: str
    chunks: list[Chunk]
    manuscripts: list[str]
    budgets: list[int]
    passages: list[str]

    def characters(self) -> int:
        """Count what is given over all turns."""
        always = len(self.system) + sum(len(chunk.text) for chunk in self.chunks)
        return sum(always + len(manuscript) for manuscript in self.manuscripts)

    def story(self, budget: int, turn: int) -> list[str]:
        """Tell the story so far: a little more than the budget, and a passage more every turn."""
        return self.passages[: budget // PASSAGE_TOKENS + turn]


class Told(NamedTuple):
    """What a contestant answers: the prompt, its count if it tells one, and whom it left out."""

    prompt: str
    reported: int | None = None
    dropped: list[str] | None = None


class Contestant(Protocol):
    """Somebody who fits the work into a budget, and remembers what it likes between turns."""

    @property
    def tokenised(self) -> int:
        """How many characters it had tokenised so far."""
        ...

    def turn(self, manuscript: str) -> Told:
        """Make a prompt of everything with this manuscript."""
        ...

    def go_on(self, story: list[str]) -> str:
        """Make a prompt of the end of a story that is longer than the budget."""
        ...


def walk(work: Work, fresh: Callable[[int], Contestant]) -> list[dict[str, Any]]:
    """Go through all turns for every budget; the first turn of several fresh starts is the cold one."""
    return [_walk(work, budget, fresh) for budget in work.budgets]


def _walk(work: Work, budget: int, fresh: Callable[[int], Contestant]) -> dict[str, Any]:
    others = [_timed(fresh(budget), work.manuscripts[0])[0] for _ in range(FRESH_STARTS - 1)]
    contestant = fresh(budget)
    cold, first = _timed(contestant, work.manuscripts[0])
    rest = [_timed(contestant, manuscript) for manuscript in work.manuscripts[1:]]
    return {
        "budget": budget,
        "cold": statistics.median([cold, *others]),
        "warm": statistics.median(milliseconds for milliseconds, _ in rest),
        "tokenised": contestant.tokenised / work.characters(),
        "told": [first, *(told for _, told in rest)],
        "stories": [contestant.go_on(work.story(budget, n)) for n in range(len(rest) + 1)],
    }


def _timed(contestant: Contestant, manuscript: str) -> tuple[float, Told]:
    began = time.perf_counter()
    told = contestant.turn(manuscript)
    return 1000 * (time.perf_counter() - began), told


def take_part(enter: Callable[[Work, int], Contestant]) -> None:
    """Be a program: read the work from the first argument, write what came of it to the second."""
    given = json.loads(Path(sys.argv[1]).read_bytes())
    system, chunks, *rest = given
    work = Work(system, [Chunk(*chunk) for chunk in chunks], *rest)
    made = walk(work, lambda budget: enter(work, budget))
    Path(sys.argv[2]).write_text(json.dumps(made), encoding="utf-8")
