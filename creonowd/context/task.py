"""A skill's own task: a text with places for what the author is working on.

Knows the names of the places; knows no skill.
"""

import re
from collections.abc import Mapping

from creonowd.model import Model

PLACES = ("text", "selection", "instruction", "title")
ELSEWHERE = "（见上文 Immediate）"

_PLACE = re.compile(r"\{\{\s*([^{}\s]*)\s*\}\}")


class Task(Model):
    """What a skill tells the model to do. Places are written `{{text}}`."""

    template: str = ""

    @property
    def places(self) -> frozenset[str]:
        """The names of all places in the template, known or not."""
        return frozenset(_PLACE.findall(self.template))

    @property
    def holds_selection(self) -> bool:
        """Whether the selection stands in the task, so that it is not shown again."""
        return bool(self.places & {"text", "selection"})

    @property
    def holds_instruction(self) -> bool:
        """Whether the additional input stands in the task, so that it is not shown again."""
        return "instruction" in self.places

    def fill(self, values: Mapping[str, str]) -> str:
        """Put values into the places; one without a value points to what stands above."""
        return _PLACE.sub(lambda match: values.get(match[1]) or ELSEWHERE, self.template)
