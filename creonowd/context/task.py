"""A skill's own task: a text with places for what the author is working on.

Knows the names of the places; knows no skill.
"""

import re
from collections.abc import Mapping

from creonowd.model import Model

PLACES = ("text", "selection", "instruction", "title")
ELSEWHERE = "（见上文 Immediate）"
BEFORE = "（见前）"
NOTHING = "（无）"

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
        """Put values into the places, each text once.

        `{{text}}` and `{{selection}}` are the same text. Without a selection they point to what
        stands above; a place for anything else that is missing says that there is none.
        """
        shown: set[str] = set()

        def put(match: re.Match[str]) -> str:
            name = "selection" if match[1] == "text" else match[1]
            if name in shown and name != "title":
                return BEFORE
            shown.add(name)
            return values.get(match[1]) or (ELSEWHERE if name == "selection" else NOTHING)

        return _PLACE.sub(put, self.template)
