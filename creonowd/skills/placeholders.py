"""`{{text}}` and its kin in a skill's prompt. Knows their names; not what they stand for."""

import re
from collections.abc import Iterator

from creonowd.skills.context_rules import shorten, unknown
from creonowd.workspace.front_matter import Fault

TEXT = "text"
SELECTION = "selection"
INSTRUCTION = "instruction"
TITLE = "title"
KNOWN = (TEXT, SELECTION, INSTRUCTION, TITLE)

PLACEHOLDER = re.compile(r"\{\{\s*([^{}]*?)\s*\}\}")


def faults(prompt: str, key: str) -> Iterator[Fault]:
    """Find what looks like a placeholder and is none."""
    for match in PLACEHOLDER.finditer(prompt):
        if match[1] not in KNOWN:
            found = unknown(key, match[1], KNOWN)
            yield Fault(key=key, message=f"The placeholder {found.message}")
    rest = PLACEHOLDER.sub("", prompt)
    if "{{" in rest:
        broken = shorten(rest[rest.index("{{") :].partition("\n")[0])
        yield Fault(key=key, message=f"A placeholder is not closed at `{broken}`.")
