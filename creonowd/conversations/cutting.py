"""Which rounds a summary tells and which stay: a pure function of what each costs.

It goes through the conversation turn by turn, as it came to be, so that a later turn finds the
same answer for the earlier ones and the prompt's beginning stays as it was in between.
"""

from collections.abc import Callable, Sequence

from creonowd.conversations.draft import Cost
from creonowd.model import Model


class Policy(Model):
    """The numbers that the settings give."""

    keep: int = 5
    floor: int = 2
    summary_at: float = 0.5
    summary_tokens: int = 1_200


def cut_point(
    costs: Sequence[Cost],
    fixed: int,
    now: int,
    *,
    line: float,
    keep: int,
    told: Callable[[int], int],
) -> int:
    """Tell how many of the oldest rounds are summarised.

    `fixed` is what stands before them, `now` what the current turn adds, `line` the cost from
    which a summary sets in; `told` tells what the summary of so many rounds costs.
    """
    cut = held = summary = 0
    for turn, (request, whole, _) in enumerate([*costs, Cost(now, 0)]):
        full = fixed + summary + held + request >= line
        if full and turn - keep > cut:
            held -= sum(one.whole for one in costs[cut : turn - keep])
            cut = turn - keep
            summary = told(cut)
        held += whole
    return cut
