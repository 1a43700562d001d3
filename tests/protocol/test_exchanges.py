"""The exchanges of the reference are what a daemon answers now."""

import json
from pathlib import Path

import msgspec
import pytest

from creonowd.channels import ALL_CHANNELS
from scripts.contract.exchanges import capture
from scripts.contract.generate import EXCHANGES
from testing.clients import Client, RpcError

ROOT = Path(__file__).resolve().parents[2]


def test_every_channel_has_an_exchange_and_a_daemon_repeats_it() -> None:
    written = json.loads((ROOT / EXCHANGES).read_text(encoding="utf-8"))

    captured = capture()

    assert captured.keys() == {channel.name for channel in ALL_CHANNELS}
    assert captured == written, "run scripts/gen_protocol"
    for channel in ALL_CHANNELS:
        channel.payload.read(msgspec.json.encode(captured[channel.name]["payload"]))


def test_an_error_that_a_channel_does_not_declare_fails_the_test_that_sees_it() -> None:
    for declared in ("NOT_FOUND", "TIMEOUT"):
        Client.on_error("project:story", failed_with(declared))

    with pytest.raises(AssertionError, match="project:story gave CONFLICT; declare it"):
        Client.on_error("project:story", failed_with("CONFLICT"))


def failed_with(code: str) -> RpcError:
    return RpcError({"code": -32803, "message": "…", "data": {"code": code}})
