"""The numbers that trimming works with, out of a budget profile. Knows no text."""

import math
from decimal import Decimal

from creonowd.context.budget import BudgetProfile, is_off, share
from creonowd.context.fragment import Layer
from creonowd.model import Model

_INDEX = {layer: index for index, layer in enumerate(Layer)}


class Figures(Model, cache_hash=True):
    """What a profile allows: the total, each layer's minimum and share, the layers that are off.

    `rules_ratio` is how far the Rules line rises with the total.
    """

    total: int
    minimums: tuple[int, ...] = (0, 0, 0, 0)
    shares: tuple[int, ...] = (0, 0, 0, 0)
    off: frozenset[Layer] = frozenset()
    rules_ratio: float = 0.0

    def minimum(self, layer: Layer) -> int:
        """Tell what a layer is promised."""
        return self.minimums[_INDEX[layer]]

    def share(self, layer: Layer) -> int:
        """Tell what a layer's ratio stands for; only that of Rules is a line."""
        return self.shares[_INDEX[layer]]

    @property
    def rules_line(self) -> int:
        """The Rules line L."""
        return self.share(Layer.RULES)

    def more_for_rules(self, tokens: int) -> int | None:
        """Tell by how much the total must grow for the Rules line to rise so far; None if never."""
        if not self.rules_ratio:
            return None
        wanted = (self.rules_line + tokens) / Decimal(repr(self.rules_ratio))
        return math.ceil(wanted) - self.total


def figures_of(profile: BudgetProfile) -> Figures:
    """Take from a profile what trimming needs."""
    budgets = [getattr(profile.layers, layer) for layer in Layer]
    return Figures(
        total=profile.total_budget_tokens,
        minimums=tuple(budget.minimum_tokens for budget in budgets),
        shares=tuple(share(profile, layer) for layer in Layer),
        off=frozenset(layer for layer in Layer if is_off(profile, layer)),
        rules_ratio=profile.layers.rules.ratio,
    )


def step(figures: Figures, surrounding: int | None) -> int:
    """Tell the step G in which the window moves, from skill and profile alone."""
    width = figures.share(Layer.IMMEDIATE) if surrounding is None else surrounding
    return max(1, width // 4)
