"""Write the generated files of `protocol/` and of its package `electron`. Knows where files go."""

import json
from pathlib import Path
from typing import Any

import msgspec

from creonowd.channels import CONTRACT
from creonowd.errors import CATALOGUE, WARNINGS
from creonowd.rpc.openrpc import describe
from scripts.contract.electron import allow_lists, preload
from scripts.contract.typescript import typescript

ROOT = Path(__file__).resolve().parents[2]
PLACE = Path("protocol")
PRELOAD = "electron/preload.cjs"


def generate() -> dict[str, str]:
    """Make every file of the contract, by name."""
    document = describe(CONTRACT)
    return {
        "openrpc.json": _pretty(document),
        "errors.json": _pretty(_codes()),
        "electron/contract.d.ts": typescript(document),
        "electron/channels.mjs": allow_lists(CONTRACT),
        PRELOAD: preload((ROOT / PLACE / PRELOAD).read_text(encoding="utf-8"), CONTRACT),
    }


def main() -> None:
    """Write the files into the repository."""
    for name, text in generate().items():
        (ROOT / PLACE / name).write_text(text, encoding="utf-8", newline="\n")


def _codes() -> dict[str, Any]:
    return {
        "errors": {code.value: CATALOGUE[code] for code in sorted(CATALOGUE)},
        "warnings": {code.value: WARNINGS[code]._asdict() for code in sorted(WARNINGS)},
    }


def _pretty(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    main()
