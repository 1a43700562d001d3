"""`creonowd call` — one request from the shell."""

import argparse
import codecs
import difflib
import os
import sys
from typing import Any

import msgspec

from creonowd.cli.client import Client, connect, show, write
from creonowd.errors import DaemonError, ErrorCode
from creonowd.settings import user_data_dir
from creonowd.text import well_formed_json


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "call",
        parents=[shared],
        description="Call a channel of the running daemon, or of one that is started for the call. "
        "The channels are in protocol/openrpc.json and in the answer of rpc.discover.",
    )
    parser.add_argument("channel", metavar="CHANNEL", help="such as app:ping")
    parser.add_argument(
        "payload", metavar="JSON", nargs="?", default="{}", help="its payload; - reads stdin"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the result and return 0, or print the error to stderr and return 1."""
    from_stdin = arguments.payload == "-"
    text = sys.stdin.buffer.read() if from_stdin else os.fsencode(arguments.payload)
    try:
        payload = _payload(text.removeprefix(codecs.BOM_UTF8).strip() or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        write(
            f"creonowd: The payload is not JSON: {error}. "
            "Put it between quotes for the shell, or give - and pipe it in.\n",
            sys.stderr,
        )
        return 2
    try:
        with connect(user_data_dir(arguments.user_data), seconds=None) as client:
            show(_call(client, arguments.channel, payload))
    except DaemonError as error:
        show({"code": error.code, "message": error.message, "details": error.details}, sys.stderr)
        return 1
    return 0


def _call(client: Client, channel: str, payload: Any) -> Any:
    """Call the channel; if there is none, suggest the nearest."""
    try:
        return client.request(channel, payload)
    except DaemonError as error:
        if error.code is not ErrorCode.IPC_CHANNEL_FORBIDDEN:
            raise
        known = [method["name"] for method in client.request("rpc.discover")["methods"]]
        near = difflib.get_close_matches(channel, known, n=1)
        advice = f"Did you mean {near[0]}?" if near else "`creonowd call rpc.discover` lists them."
        raise DaemonError(error.code, f"{error.message} {advice}", **error.details) from None


def _payload(text: bytes) -> Any:
    """Decode the payload as the daemon does, which accepts a lone surrogate."""
    return msgspec.json.decode(well_formed_json(text))
