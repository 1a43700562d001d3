"""`{{text}}` and its kin in a skill's prompt: what looks like one must be one. Fills none."""

import re
from collections.abc import Iterator

from creonowd.context.plan import PLACES
from creonowd.skills.context_rules import shorten, unknown
from creonowd.storage.front_matter import Fault

PLACEHOLDER = re.compile(r"\{\{([^{}]*)\}\}")


def faults(prompt: str, key: str) -> Iterator[Fault]:
    """Find what looks like a placeholder and is none, each once; lines are those of the prompt."""
    known: set[str] = set(PLACES)
    for match in PLACEHOLDER.finditer(prompt):
        if (name := match[1].strip()) not in known:
            known.add(name)
            found = unknown(key, name, PLACES)
            line = prompt.count("\n", 0, match.start()) + 1
            yield Fault(key=key, message=f"The placeholder {found.message}", line=line)
    rest = PLACEHOLDER.sub(_blank, prompt)
    if (start := rest.find("{{")) >= 0:
        broken = shorten(rest[start:].partition("\n")[0])
        line = rest.count("\n", 0, start) + 1
        yield Fault(key=key, message=f"A placeholder is not closed at `{broken}`.", line=line)


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n")
