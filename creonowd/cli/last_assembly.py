"""The last prompt that `creonowd assemble` saw of a document, for `--diff`. Already redacted."""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from creonowd.model import Model
from creonowd.storage import atomic

FOLDER = "assemble"
VERSION = 1


class Remembered(Model):
    """What is kept of a result."""

    version: int
    prompt: str
    prompt_hash: str
    token_count: int


class LastAssembly:
    """One file per project, document and skill."""

    def __init__(self, user_data: Path, whose: Iterable[str]) -> None:
        name = sha256("\0".join(whose).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._path = user_data / FOLDER / f"{name}.json"

    def recall(self) -> Remembered | None:
        """Read the last result; None if there is none that can be read."""
        try:
            held = msgspec.json.decode(self._path.read_bytes(), type=Remembered)
        except (OSError, msgspec.MsgspecError):
            return None
        return held if held.version == VERSION else None

    def remember(self, result: dict[str, Any]) -> None:
        """Make this the last result."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        held = Remembered(
            version=VERSION,
            prompt=result["prompt"],
            prompt_hash=result["promptHash"],
            token_count=result["tokenCount"],
        )
        atomic.replace(self._path, msgspec.json.encode(held))
