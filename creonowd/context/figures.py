"""The numbers that trimming works with, out of a budget profile. Knows no text."""

from creonowd.context.budget import BudgetProfile, is_off, share
from creonowd.context.fragment import Layer
from creonowd.model import Model

_INDEX = {layer: index for index, layer in enumerate(Layer)}


class Figures(Model, cache_hash=True):
    """What a profile allows: the total, each layer's minimum and share, the layers that are off."""

    total: int
    minimums: tuple[int, ...] = (0, 0, 0, 0)
    shares: tuple[int, ...] = (0, 0, 0, 0)
    off: frozenset[Layer] = frozenset()

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


def figures_of(profile: BudgetProfile) -> Figures:
    """Take from a profile what trimming needs."""
    budgets = [getattr(profile.layers, layer) for layer in Layer]
    return Figures(
        total=profile.total_budget_tokens,
        minimums=tuple(budget.minimum_tokens for budget in budgets),
        shares=tuple(share(profile, layer) for layer in Layer),
        off=frozenset(layer for layer in Layer if is_off(profile, layer)),
    )


def step(figures: Figures, surrounding: int | None) -> int:
    """Tell the step G in which the window moves, from skill and profile alone."""
    width = figures.share(Layer.IMMEDIATE) if surrounding is None else surrounding
    return max(1, width // 4)
