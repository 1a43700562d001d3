"""`creonowd call` — one request from the shell."""

import argparse
import codecs
import os
import sys
from typing import Any

import msgspec

from creonowd.cli.client import connect
from creonowd.cli.output import show
from creonowd.errors import DaemonError
from creonowd.rpc.salvage import mend_surrogates
from creonowd.settings import user_data_dir


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "call",
        parents=[shared],
        description="Call a channel of the running daemon, or of one that is started for the call.",
    )
    parser.add_argument("channel", metavar="CHANNEL", help="such as app:ping")
    parser.add_argument("payload", metavar="JSON", nargs="?", default="{}", help="- reads stdin")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the result and return 0, or print the error to stderr and return 1."""
    piped = arguments.payload == "-"
    text = sys.stdin.buffer.read() if piped else os.fsencode(arguments.payload)
    try:
        payload = _payload(text.removeprefix(codecs.BOM_UTF8).strip() or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        sys.stderr.write(f"creonowd: the payload is not JSON: {error}\n")
        return 2
    try:
        with connect(user_data_dir(arguments.user_data), seconds=None) as client:
            show(client.request(arguments.channel, payload))
    except DaemonError as error:
        show({"code": error.code, "message": error.message, "details": error.details}, sys.stderr)
        return 1
    return 0


def _payload(text: bytes) -> Any:
    """Read what was given as the daemon would: half an emoji is no reason to refuse it."""
    return msgspec.json.decode(mend_surrogates(text) or text)
