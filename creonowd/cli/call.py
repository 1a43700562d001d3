"""`creonowd call` — one request from the shell, and the contract on the terminal.

The list of channels, and one channel with its fields and errors, are read from the document in the
package; no daemon is needed for them.
"""

import argparse
import codecs
import difflib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec

from creonowd.cli.client import Client, connect, sentence, show, write
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
        wording = Wording("{} {}", "{}{}").format(error.wording, advice)
        raise DaemonError(error.code, wording, **error.details) from None


def _warn_of_unknown_fields(channel: str, payload: Any, *, chinese: bool) -> None:
    """Warn of fields that this version does not know; they are sent, since a newer daemon may know them."""
    for field, near in unknown_fields(read_document(), channel, payload).items():
        wording = _IGNORED.format(channel, field).text(chinese=chinese)
        advice = _SIMILAR.format(near).text(chinese=chinese) if near else ""
        write(f"creonowd: {sentence(f'{wording} {advice}'.rstrip())}\n", sys.stderr)


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


Schema = dict[str, Any]

DOCUMENT = Path(__file__).parents[1] / "openrpc.json"
SCHEMAS = "#/components/schemas/"
CALLERS = {"renderer": "pages and owners", "owner": "owners only"}
NARROWEST = 40
LONGEST_NAME = 30
INDENT = "  "


def read_document() -> Schema:
    """Read the OpenRPC document of this version."""
    return json.loads(DOCUMENT.read_bytes())


def list_channels(document: Schema, width: int) -> str:
    """Return a line or two for every channel: its name, and what it does."""
    rows = ((method["name"], method["summary"]) for method in document["methods"])
    return "".join(_row(name, text, LONGEST_NAME, width) for name, text in rows)


def similar_channels(document: Schema, name: str) -> list[str]:
    """Return the names that are nearest to a wrong one."""
    return difflib.get_close_matches(name, [method["name"] for method in document["methods"]])


def unknown_fields(document: Schema, channel: str, payload: Any) -> dict[str, str]:
    """Return the fields of a payload that a channel ignores, each with the nearest that it takes."""
    method = next((one for one in document["methods"] if one["name"] == channel), None)
    if method is None or not isinstance(payload, dict):
        return {}
    schema = document["components"]["schemas"][type_name(method["x-payload"])]
    known: list[str] = list(schema.get("properties", {}))
    unknown = [name for name in cast("dict[str, Any]", payload) if name not in {*known, "_meta"}]
    return {name: "".join(difflib.get_close_matches(name, known, n=1)) for name in unknown}


def explain_channel(document: Schema, name: str, width: int) -> str | None:
    """Return what a channel does, takes, returns and may fail with; None if there is none."""
    method = next((one for one in document["methods"] if one["name"] == name), None)
    if method is None:
        return None
    schemas: dict[str, Schema] = document["components"]["schemas"]
    result = method["result"]["schema"]
    errors = f"{_codes(method['errors'])}; as any channel {_codes(document['x-anyError'])}"
    parts = [
        f"{name} — {method['summary']}\n",
        *([f"{_wrap(method['description'], width)}\n"] if "description" in method else []),
        f"May be called by {CALLERS[method['x-role']]}.\n",
        f"Payload\n{_fields(schemas[type_name(method['x-payload'])], width)}",
        f"Result\n{_result(result, schemas, width)}",
        f"Errors\n{_wrap(errors.removeprefix('; '), width, INDENT)}\n",
        *(_example(name, example) for example in method.get("examples", ())),
        "docs/api.md has every type, docs/codes.md every error.\n",
    ]
    return "\n".join(parts)


def _result(schema: Schema, schemas: dict[str, Schema], width: int) -> str:
    name = type_name(schema)
    return _fields(schemas[name], width) if name else f"{INDENT}{kind(schema)}\n"


def _fields(schema: Schema, width: int) -> str:
    properties: dict[str, Schema] = schema.get("properties", {})
    if not properties:
        return f"{INDENT}(no fields)\n"
    longest = max(map(len, properties))
    required = schema.get("required", [])
    return "".join(
        _row(field, _sentence(held, optional=field not in required), longest, width, INDENT)
        for field, held in properties.items()
    )


def _sentence(schema: Schema, *, optional: bool) -> str:
    described = schema.get("description", "").replace("\n\n", " ")
    return f"({spell(schema, optional=optional)}) {described}".strip()


def spell(schema: Schema, *, optional: bool, link: Callable[[str], str] = str) -> str:
    """Spell the type of a field, its limits, and whether it may be left out."""
    default = schema.get("default")
    parts = [kind(schema, link), *limits(schema)]
    if optional:
        plain = isinstance(default, str | int | float) and default not in {"", False}
        parts.append(f"optional ({json.dumps(default)} if left out)" if plain else "optional")
    return ", ".join(parts)


def kind(schema: Schema, link: Callable[[str], str] = str) -> str:
    """Spell a type in a word or two; `link` spells the name of another type."""
    if "$ref" in schema:
        return link(type_name(schema))
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(kind(one, link) for one in schema["anyOf"]))
    if isinstance(schema.get("items"), dict):
        return f"list of {kind(schema['items'], link)}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map of {kind(schema['additionalProperties'], link)}"
    return schema.get("type", "anything")


def limits(schema: Schema) -> Iterator[str]:
    """Spell the limits of a value, also of the one member of a union that has some."""
    for one in (schema, *schema.get("anyOf", ())):
        low, high = one.get("minimum"), one.get("maximum")
        if low is not None and high is not None:
            yield f"{low} to {high}"
        elif low is not None:
            yield f"at least {low}"
        if "exclusiveMinimum" in one:
            yield f"over {one['exclusiveMinimum']}, at most {high}"
        if "maxLength" in one:
            yield f"at most {one['maxLength']} characters"
        elif one.get("minLength"):
            yield "not empty"
        if "maxItems" in one:
            yield f"at most {one['maxItems']} items"
        if "pattern" in one:
            yield f"`{one['pattern']}`"


def type_name(schema: Schema) -> str:
    """Return the name of the type that a schema refers to; empty if it is none."""
    return schema.get("$ref", "").removeprefix(SCHEMAS)


def _codes(refs: list[Schema]) -> str:
    return ", ".join(ref["$ref"].rpartition("/")[2] for ref in refs)


def _example(name: str, example: Schema) -> str:
    payload = {param["name"]: param["value"] for param in example["params"]}
    quoted = json.dumps(payload, ensure_ascii=False).replace("'", "'\\''")
    return f"Example\n{INDENT}creonowd call {name} '{quoted}'\n"


def _row(name: str, text: str, longest: int, width: int, indent: str = "") -> str:
    """Put a text beside a name; below a long one, and where the terminal is too narrow for both."""
    column = len(indent) + longest + 2
    if width - column < NARROWEST:
        return f"{indent}{name}\n{_wrap(text, width, indent + INDENT * 2)}\n"
    below = _wrap(text, width, " " * column)
    if len(name) > longest:
        return f"{indent}{name}\n{below}\n"
    return f"{indent}{name:<{longest}}  {below.lstrip()}\n"


def _wrap(text: str, width: int, indent: str = "") -> str:
    parts = (" ".join(part.split()) for part in text.split("\n\n"))
    return "\n\n".join(
        textwrap.fill(
            part,
            max(width, NARROWEST),
            initial_indent=indent,
            subsequent_indent=indent,
            break_on_hyphens=False,
            break_long_words=False,
        )
        for part in parts
    )
