"""`creonowd call` — one request from the shell."""

import argparse
import codecs
import difflib
import os
import sys
from typing import Any

import msgspec

from creonowd.cli.client import Client, connect, show, write
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.settings import console_language, user_data_dir
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
    chinese = console_language() is Language.CHINESE
    from_stdin = arguments.payload == "-"
    text = sys.stdin.buffer.read() if from_stdin else os.fsencode(arguments.payload)
    try:
        payload = _payload(text.removeprefix(codecs.BOM_UTF8).strip() or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        write(f"creonowd: {_NOT_JSON.format(error).text(chinese=chinese)}\n", sys.stderr)
        return 2
    try:
        with connect(user_data_dir(arguments.user_data), seconds=None) as client:
            show(_call(client, arguments.channel, payload))
    except DaemonError as error:
        message = error.wording.text(chinese=chinese)
        show({"code": error.code, "message": message, "details": error.details}, sys.stderr)
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
        advice = _SIMILAR.format(near[0]) if near else _LISTED
        said = Wording("{} {}", "{}{}").format(error.wording, advice)
        raise DaemonError(error.code, said, **error.details) from None


_NOT_JSON = Wording(
    "The payload is not JSON: {}. Put it between quotes for the shell, or give - and pipe it in.",
    "参数不是 JSON：{}。请为 shell 加上引号，或写 - 并从管道传入。",
)
_SIMILAR = Wording("Did you mean {}?", "是否想用 {}？")
_LISTED = Wording(
    "`creonowd call rpc.discover` lists them.", "creonowd call rpc.discover 列出全部通道。"
)


def _payload(text: bytes) -> Any:
    """Decode the payload as the daemon does, which accepts a lone surrogate."""
    return msgspec.json.decode(well_formed_json(text))
