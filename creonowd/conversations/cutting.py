"""Which rounds a summary tells and which stay: a pure function of what each costs.

It goes through the conversation turn by turn, as it came to be, so that a later turn finds the
same answer for the earlier ones and the prompt's beginning stays as it was in between. How far it
came is remembered with each round, so that a turn takes one step however long the conversation is.
"""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple

from creonowd.conversations.draft import Cost
from creonowd.conversations.rounds import Round
from creonowd.model import Model
from creonowd.settings import Settings


class Policy(Model):
    """The numbers that the settings give."""

    keep: int
    floor: int
    summary_at: float
    summary_tokens: int


def policy_of(settings: Settings) -> Policy:
    """Take the numbers from the settings."""
    return Policy(
        keep=max(settings.history_rounds, settings.history_rounds_floor),
        floor=settings.history_rounds_floor,
        summary_at=settings.history_summary_at,
        summary_tokens=settings.history_summary_tokens,
    )


class Line(NamedTuple):
    """From where on a summary sets in: beside `fixed` tokens, at `limit`, leaving `keep` rounds."""

    tokenizer: str
    fixed: int
    limit: float
    keep: int
    summary_tokens: int


class Prices(NamedTuple):
    """What a round costs, and a summary of so many; `kept` are the lengths of those written down.

    A summary that is written down later may cost another price, so that what was found without it
    holds no more.
    """

    of_round: Callable[[Round], Cost]
    of_summary: Callable[[int], int]
    kept: Sequence[int] = ()


class Cut(NamedTuple):
    """How many rounds are summarised, what they cost, and what summary and kept rounds cost."""

    covers: int = 0
    gone: Cost = Cost(0, 0)
    summary: int = 0
    held: int = 0


def cut_point(rounds: Sequence[Round], now: int, line: Line, prices: Prices) -> Cut:
    """Tell which of the oldest rounds are summarised when the current turn adds `now`."""
    turn, cut = _remembered(rounds, line, prices)
    for one in rounds[turn:]:
        cost = prices.of_round(one)
        cut = _at_turn(cut, rounds, one.index, cost.request, (line, prices))
        cut = cut._replace(held=cut.held + cost.whole)
        one.remember(_key(one.index, line, prices), cut)
    return _at_turn(cut, rounds, len(rounds), now, (line, prices))


def _remembered(rounds: Sequence[Round], line: Line, prices: Prices) -> tuple[int, Cut]:
    for one in reversed(rounds):
        known = one.recall(_key(one.index, line, prices))
        if known is not None:
            return one.index + 1, known
    return 0, Cut()


def _key(turn: int, line: Line, prices: Prices) -> tuple[Line, int]:
    return line, bisect_right(prices.kept, turn)


def _at_turn(
    cut: Cut, rounds: Sequence[Round], turn: int, request: int, terms: tuple[Line, Prices]
) -> Cut:
    line, prices = terms
    covers = turn - line.keep
    full = line.fixed + cut.summary + cut.held + request >= line.limit
    if not full or covers <= cut.covers:
        return cut
    leaving = [prices.of_round(one) for one in rounds[cut.covers : covers]]
    tokens = sum(one.whole for one in leaving)
    characters = cut.gone.characters + sum(one.characters for one in leaving)
    gone = Cost(0, cut.gone.whole + tokens, characters)
    return Cut(covers, gone, prices.of_summary(covers), cut.held - tokens)
