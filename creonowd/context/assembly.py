"""What one assembly came to, as a value: the two halves of the prompt and every verdict.

Knows no wire; `answer` and `inspection` show it.
"""

from collections.abc import Iterator

from creonowd.context.fragment import Action, Layer
from creonowd.context.gather import Failure
from creonowd.context.judged import Judged
from creonowd.context.plan import Plan
from creonowd.context.render import Set
from creonowd.context.stable import Stable
from creonowd.context.verdict import Verdict
from creonowd.context.warnings import Warned
from creonowd.model import Model
from creonowd.tokens.tokenizer import Tokenizer


class Assembly(Model):
    """The result of one pass. `warnings` name the layer they belong to, if one."""

    plan: Plan
    stable: Stable
    user: Set
    prompt_hash: str
    layers: dict[Layer, Judged]
    warnings: tuple[Warned, ...]
    failures: tuple[Failure, ...]
    tokenizer: Tokenizer

    @property
    def tokens(self) -> int:
        """The exact count of the prompt."""
        return self.stable.prompt.tokens + self.user.tokens

    @property
    def fixed_tokens(self) -> int:
        """The tokens that belong to no layer."""
        return self.stable.prompt.fixed + self.user.fixed

    def count(self, action: Action) -> int:
        """Tell of how many candidates something became."""
        return sum(judged.actions.get(action, 0) for judged in self.layers.values())

    def all_verdicts(self) -> Iterator[Verdict]:
        """Walk every candidate."""
        for layer in Layer:
            yield from self.layers[layer].verdicts
