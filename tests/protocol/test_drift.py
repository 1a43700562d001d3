"""What other languages read is what the daemon does."""

import json
import re
from pathlib import Path

import pytest

from creonowd.channels import ALL_CHANNELS, CONTRACT, E2E_CHANNELS
from creonowd.errors import ErrorCode, WarningCode
from scripts.contract.generate import generate
from scripts.contract.openrpc import contract_hash, describe
from testing.clients import Client

ROOT = Path(__file__).resolve().parents[2]
PROTOCOL = ROOT / "protocol"


@pytest.mark.parametrize("name", generate())
def test_a_generated_file_is_fresh(name: str) -> None:
    written = (ROOT / name).read_text(encoding="utf-8")

    assert written == generate()[name], "run scripts/gen_protocol"


def test_the_types_are_declared_once_and_re_exported() -> None:
    entry = (PROTOCOL / "creonow.d.ts").read_text(encoding="utf-8")

    assert 'export * from "./electron/contract.js";' in entry.splitlines()
    assert "protocol/electron/contract.d.ts" in generate()


async def test_the_daemon_serves_the_document_that_is_written(client: Client) -> None:
    written = json.loads((PROTOCOL / "openrpc.json").read_text(encoding="utf-8"))

    served = await client.call("rpc.discover")
    welcome = await client.call("initialize")

    assert served == written
    assert welcome["contractHash"] == contract_hash(written)


def test_every_type_of_the_contract_has_a_name_of_its_own() -> None:
    names = describe(CONTRACT)["components"]["schemas"]

    assert [name for name in names if not name.isidentifier()] == []


def test_every_type_and_every_channel_is_explained() -> None:
    document = describe(CONTRACT)

    dumb = [m["name"] for m in document["methods"] if not m["summary"]]
    bare = [n for n, held in document["components"]["schemas"].items() if "description" not in held]

    assert dumb + bare == []


def test_no_channel_stands_twice() -> None:
    names = [channel.name for channel in ALL_CHANNELS + E2E_CHANNELS]

    assert len(names) == len(set(names))


def test_channels_for_harnesses_are_no_part_of_the_contract() -> None:
    names = [method["name"] for method in describe(CONTRACT)["methods"]]

    assert not any(name.startswith("e2e:") for name in names)


def test_every_code_is_in_errors_json() -> None:
    held = json.loads((PROTOCOL / "errors.json").read_text(encoding="utf-8"))

    assert held["errors"].keys() == {code.value for code in ErrorCode}
    assert held["warnings"].keys() == {code.value for code in WarningCode}
    assert held["errors"]["INVALID_ARGUMENT"]["number"] == -32602
    assert held["errors"]["TIMEOUT"]["retryable"] is True


def test_the_lock_file_holds_no_address() -> None:
    lock = (PROTOCOL / "package-lock.json").read_text(encoding="utf-8")

    assert re.findall(r'"resolved": "(?!electron")|https?:', lock) == []
