"""Pretty on a terminal, plain JSON in a pipe."""

import json
import sys
from typing import Any, TextIO


def show(value: Any, stream: TextIO | None = None) -> None:
    """Print a value as JSON: indented for a person, on one line for a program."""
    target = sys.stdout if stream is None else stream
    text = json.dumps(value, ensure_ascii=False, indent=2 if target.isatty() else None)
    write(text + "\n", target)


def write(text: str, stream: TextIO | None = None) -> None:
    """Print text as UTF-8, whatever the terminal's own encoding is."""
    target = sys.stdout if stream is None else stream
    target.flush()
    target.buffer.write(text.encode("utf-8", "replace"))
    target.flush()
