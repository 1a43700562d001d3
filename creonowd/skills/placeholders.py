"""`{{text}}` and its kin in a skill's prompt: what looks like one must be one. Fills none."""

import re
from collections.abc import Iterator

from creonowd.context.task import PLACES
from creonowd.skills.context_rules import shorten, unknown
from creonowd.workspace.front_matter import Fault

PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def faults(prompt: str, key: str) -> Iterator[Fault]:
    """Find what looks like a placeholder and is none."""
    for match in PLACEHOLDER.finditer(prompt):
        if match[1] not in PLACES:
            found = unknown(key, match[1], PLACES)
            yield Fault(key=key, message=f"The placeholder {found.message}")
    rest = PLACEHOLDER.sub("", prompt)
    if "{{" in rest:
        broken = shorten(rest[rest.index("{{") :].partition("\n")[0])
        yield Fault(key=key, message=f"A placeholder is not closed at `{broken}`.")
