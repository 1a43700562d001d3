"""Write what is generated from the channels: the contract, its types, and what the daemon serves."""

import json
from pathlib import Path
from typing import Any

import msgspec

from creonowd.channels import CONTRACT
from creonowd.errors import CATALOGUE, WARNINGS
from scripts.contract.codes import codes_page
from scripts.contract.electron import allow_lists, preload
from scripts.contract.exchanges import capture
from scripts.contract.openrpc import canonical, describe
from scripts.contract.reference import api_page
from scripts.contract.typescript import typescript

ROOT = Path(__file__).resolve().parents[2]
SERVED = "creonowd/openrpc.json"
EXCHANGES = "protocol/exchanges.json"
PRELOAD = "protocol/electron/preload.cjs"


def generate() -> dict[str, str]:
    """Make every generated file, by its path in the repository, around the captured exchanges."""
    exchanges = json.loads((ROOT / EXCHANGES).read_text(encoding="utf-8"))
    document = describe(CONTRACT, exchanges)
    return {
        SERVED: canonical(document).decode(),
        "protocol/openrpc.json": _pretty(document),
        "protocol/errors.json": _pretty(_codes()),
        "protocol/electron/contract.d.ts": typescript(document),
        "protocol/electron/channels.mjs": allow_lists(CONTRACT),
        PRELOAD: preload((ROOT / PRELOAD).read_text(encoding="utf-8"), CONTRACT),
        "docs/api.md": api_page(document),
        "docs/codes.md": codes_page(),
    }


def main() -> None:
    """Write the files into the repository, first without new exchanges, so that the daemon starts."""
    for files in (generate, _exchanges, generate):
        for name, text in files().items():
            (ROOT / name).write_text(text, encoding="utf-8", newline="\n")


def _exchanges() -> dict[str, str]:
    return {EXCHANGES: _pretty(capture())}


def _codes() -> dict[str, Any]:
    return {
        "errors": {code.value: CATALOGUE[code] for code in sorted(CATALOGUE)},
        "warnings": {code.value: WARNINGS[code]._asdict() for code in sorted(WARNINGS)},
    }


def _pretty(value: Any) -> str:
    return json.dumps(msgspec.to_builtins(value), ensure_ascii=False, indent=2) + "\n"


if __name__ == "__main__":
    main()
