"""The files of a table that a user brings, as tests write them."""

import gzip
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from creonowd.tokens.tables import ENCODINGS, FOLDER, published_table

BYTES = published_table([bytes([byte]) for byte in range(256)])
PATTERN = ENCODINGS["qwen3"].pattern


def write_table(
    user_data: Path, name: str = "kimi_k3", table: bytes = BYTES, **description: Any
) -> None:
    """Write a table and its description as a user would."""
    folder = user_data / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.tiktoken.gz").write_bytes(gzip.compress(table))
    usual = {"pat_str": PATTERN, "sha256": sha256(table).hexdigest(), "normalization": None}
    text = json.dumps(usual | {"licence": "for people", "models": "Kimi K3"} | description)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
