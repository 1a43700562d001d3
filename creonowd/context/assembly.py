"""What one assembly came to, as a value: the two halves of the prompt and every verdict.

Knows no wire; `result` and `inspection` show it.
"""

from collections.abc import Iterator

from creonowd.context.fragment import Layer
from creonowd.context.gather import Failure
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
    retrieved: tuple[Verdict, ...]
    immediate: tuple[Verdict, ...]
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

    def verdicts(self, layer: Layer) -> tuple[Verdict, ...]:
        """Give the verdicts of one layer in the order of the prompt."""
        return {
            Layer.RULES: self.stable.rules,
            Layer.SETTINGS: self.stable.settings,
            Layer.RETRIEVED: self.retrieved,
            Layer.IMMEDIATE: self.immediate,
        }[layer]

    def all_verdicts(self) -> Iterator[Verdict]:
        """Walk every candidate."""
        for layer in Layer:
            yield from self.verdicts(layer)
