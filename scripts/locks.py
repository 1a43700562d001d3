"""The parts of `requirements.lock` that `scripts/run` installs: for running, and for AI providers."""

import re
from collections.abc import Collection
from pathlib import Path

from scripts.environment import AI_LOCK, LOCK, RUN_LOCK
from scripts.shipping.folder import ALWAYS, EXTRAS, closure, requirements

INSTALLER = ("hatchling", "editables")  # they put creonowd in place

_BLOCK = re.compile(r"^([\w.-]+)==.*?(?=^[\w.-]+==|\Z)", re.DOTALL | re.MULTILINE)


def generate() -> dict[Path, str]:
    """Make both locks; what runs is not locked again for providers."""
    whole = LOCK.read_text(encoding="utf-8")
    running = closure([*requirements("creonowd"), *INSTALLER])
    sdks = closure(requirements("creonowd", set(EXTRAS) - {ALWAYS}, only_extras=True))
    return {RUN_LOCK: part(whole, running), AI_LOCK: part(whole, sdks - running)}


def part(lock: str, names: Collection[str]) -> str:
    """Return the packages of a lock that are named."""
    blocks = {match[1].lower(): match[0] for match in _BLOCK.finditer(lock)}
    return "".join(blocks[name] for name in sorted(names))


def main() -> None:
    """Write both files."""
    for path, text in generate().items():
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
