"""`creonowd call` — one request from the shell."""

import argparse
import codecs
import os
import shutil
import sys
from functools import partial
from typing import Any

import msgspec

from creonowd.cli.channel_help import (
    explain_channel,
    list_channels,
    read_document,
    similar_channels,
    unknown_fields,
)
from creonowd.cli.client import Client, connect, harmless, show, write
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.settings import console_language, user_data_dir
from creonowd.text import well_formed_json


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "call",
        parents=[shared],
        add_help=False,
        description="Call a channel of the running daemon, or of one that is started for the call.",
    )
    parser.add_argument("channel", metavar="CHANNEL", nargs="?", help="such as app:ping")
    parser.add_argument(
        "payload", metavar="JSON", nargs="?", default="{}", help="its payload; - reads stdin"
    )
    parser.add_argument("--list", action="store_true", help="list the channels")
    parser.add_argument(
        "-h", "--help", action="store_true", help="show this, or what CHANNEL takes and returns"
    )
    parser.set_defaults(run=partial(run, parser=parser))


def run(arguments: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Print the result and return 0, or print the error to stderr and return 1."""
    if arguments.list:
        write(list_channels(read_document(), terminal_width()))
        return 0
    if arguments.channel is None:
        return _print_usage(parser, asked=arguments.help)
    if arguments.help:
        return _explain(arguments.channel)
    return _print_result(arguments)


def terminal_width() -> int:
    """Return how many columns a text may have."""
    return shutil.get_terminal_size().columns - 1


def _print_usage(parser: argparse.ArgumentParser, *, asked: bool) -> int:
    stream = sys.stdout if asked else sys.stderr
    write(parser.format_help(), stream)
    return 0 if asked else 2


def _explain(channel: str) -> int:
    """Print what a channel takes and returns; for a wrong name, the nearest ones."""
    document = read_document()
    text = explain_channel(document, channel, terminal_width())
    if text is not None:
        write(text)
        return 0
    raise DaemonError(
        ErrorCode.IPC_CHANNEL_FORBIDDEN,
        Wording("There is no channel {}. {}", "没有通道 {}。{}").format(
            repr(channel), _advice(document, channel)
        ),
    )


def _print_result(arguments: argparse.Namespace) -> int:
    chinese = console_language() is Language.CHINESE
    from_stdin = arguments.payload == "-"
    text = sys.stdin.buffer.read() if from_stdin else os.fsencode(arguments.payload)
    try:
        payload = _payload(text.removeprefix(codecs.BOM_UTF8).strip() or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        write(f"creonowd: {_NOT_JSON.format(error).text(chinese=chinese)}\n", sys.stderr)
        return 2
    if payload:
        _warn_of_unknown_fields(arguments.channel, payload, chinese=chinese)
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
        advice = _advice(client.request("rpc.discover"), channel)
        said = Wording("{} {}", "{}{}").format(error.wording, advice)
        raise DaemonError(error.code, said, **error.details) from None


def _warn_of_unknown_fields(channel: str, payload: Any, *, chinese: bool) -> None:
    """Say which fields will be ignored: the daemon of a newer version may know them, so it lets them pass."""
    for field, near in unknown_fields(read_document(), channel, payload).items():
        said = _IGNORED.format(channel, field).text(chinese=chinese)
        advice = _SIMILAR.format(near).text(chinese=chinese) if near else ""
        write(f"creonowd: {harmless(f'{said} {advice}'.rstrip())}\n", sys.stderr)


def _advice(document: dict[str, Any], channel: str) -> Wording:
    near = similar_channels(document, channel)
    return _SIMILAR.format(near[0]) if near else _LISTED


_NOT_JSON = Wording(
    "The payload is not JSON: {}. Put it between quotes for the shell, or give - and pipe it in.",
    "参数不是 JSON：{}。请为 shell 加上引号，或写 - 并从管道传入。",
)
_IGNORED = Wording("{} takes no field `{}`; it is ignored.", "{} 没有字段 {}，已忽略。")
_SIMILAR = Wording("Did you mean {}?", "是否想用 {}？")
_LISTED = Wording("`creonowd call --list` lists them.", "creonowd call --list 列出全部通道。")


def _payload(text: bytes) -> Any:
    """Decode the payload as the daemon does, which accepts a lone surrogate."""
    return msgspec.json.decode(well_formed_json(text))
