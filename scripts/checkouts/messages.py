"""A recorded conversation of an agent at work, context files, and requests that are not valid."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from scripts.checkouts.novels import SECRET

Call = tuple[str, Any]

# Calls that end the session, wait long, or whose results are secrets of this very process.
UNASKED = {"exit", "shutdown", "initialize", "viewer:open", "session:grant", "session:revoke"}
_ODD_VALUES: tuple[Any, ...] = (None, True, -1, 1.5, 2**64, "", "..", "\ud800", [], {})
_LINES = (
    b"{",
    b"[]",
    b'"text"',
    b"{}",
    b'{"jsonrpc":"1.0","id":1,"method":"app:ping"}',
    b'{"jsonrpc":"2.0","id":1}',
    b'{"jsonrpc":"2.0","id":1,"method":7}',
    b'{"jsonrpc":"2.0","id":{},"method":"app:ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"app:ping","params":"text"}',
    b'{"jsonrpc":"2.0","id":1,"method":"no:such"}',
    b'[{"jsonrpc":"2.0","id":1,"method":"no:such"},7]',
    b'{"jsonrpc":"2.0","id":1,"method":"app:ping","params":{"a":"\xff"}}',
)


def rounds(count: int) -> list[list[dict[str, Any]]]:
    """Record rounds in which an agent searches, reads, changes and runs, with secrets in between."""
    return [_round(number) for number in range(count)]


def _round(number: int) -> list[dict[str, Any]]:
    path = f"src/chapter_{number % 7}.py"
    long = "\n".join(
        f"line {n} of draft {number}: 林远推开门，夜色很深。" for n in range(5 + 40 * number)
    )
    matches = [{"file": path, "line": n, "text": f"def step_{n}()"} for n in range(9)]
    ran = {"stdout": "ok\n12 passed", "stderr": f"password={SECRET}", "exit_code": number % 2}
    return [
        {"role": "user", "content": f"Please improve step {number} of {path}. Keep its tone."},
        _calls((f"g{number}", "Grep", {"pattern": "step", "path": "src"})),
        _result(f"g{number}", {"matches": matches, "api_key": SECRET}),
        _calls(
            (f"r{number}", "Read", {"file_path": path}),
            (f"b{number}", "Bash", {"command": "pytest"}),
            (f"e{number}", "Edit", {"file_path": path, "old_string": "a", "new_string": "b"}),
        ),
        _result(f"b{number}", ran),
        _result(f"r{number}", long),
        _result(f"e{number}", {"error": "no such file"} if number % 3 else "done"),
        {"role": "assistant", "content": f"Step {number} is better now, see example.org/{number}."},
    ]


def _calls(*made: tuple[str, str, Any]) -> dict[str, Any]:
    calls = [{"id": id_, "name": name, "arguments": given} for id_, name, given in made]
    return {"role": "assistant", "content": "", "toolCalls": calls}


def _result(call: str, content: Any) -> dict[str, Any]:
    return {"role": "tool", "toolCallId": call, "content": content}


def context_files() -> Iterator[Call]:
    """Give calls that make context files: plain, large, binary, with secrets, and lazy ones."""
    prose = "\n".join(
        f"第 {n} 行：夜色很深，key={SECRET if n % 50 == 7 else n}" for n in range(800)
    )
    kept = {"kind": "artifact", "origin": "tool"}
    yield "context:files:put", kept | {"hint": "short", "content": "one\ntwo\nthree\n"}
    yield "context:files:put", kept | {"hint": "long", "content": prose}
    yield "context:files:put", kept | {"hint": "no end of line", "content": "a" * 70_000}
    binary = base64.b64encode(bytes(range(256)) * 40).decode()
    yield "context:files:put", kept | {"hint": "binary", "base64": binary}
    value = {"rows": [{"n": n, "text": f"行 {n}"} for n in range(300)], "api_key": SECRET}
    recipe = {"type": "json", "value": value}
    yield "context:files:register", {"kind": "catalog", "hint": "json", "recipe": recipe}
    recipe = {"type": "file", "path": "chapters/01-渡口.md"}
    yield "context:files:register", {"kind": "artifact", "hint": "file", "recipe": recipe}


def looks(id_: str) -> Iterator[Call]:
    """Give calls that look into one context file."""
    for pattern in ("夜色", "行 1\\d", "^第", "key=\\S+", "(", "ZZZ", "a{3}", "[Oo]ne|two"):
        yield "context.grep", {"id": id_, "pattern": pattern}
        yield "context.grep", {"id": id_, "pattern": pattern, "contextLines": 2, "maxResults": 3}
    yield "context.grep", {"id": id_, "pattern": "ONE", "caseSensitive": True}
    yield "context.grep", {"id": id_, "pattern": "key", "sensitive": True}
    for offset, limit in ((0, 1000), (777, 4096), (10**7, 10)):
        yield "context.read", {"id": id_, "offset": offset, "limit": limit}
    yield "context.read", {"id": id_, "offset": 3, "limit": 99, "encoding": "base64"}
    yield "context.read", {"id": id_, "offset": 3, "limit": 99, "encoding": "base64", "raw": True}
    yield "context.read", {"id": id_, "sensitive": True}
    for lines in (1, 20, 500):
        yield "context.tail", {"id": id_, "lines": lines}


def lines_that_are_no_request() -> tuple[bytes, ...]:
    """Give lines that are not valid JSON-RPC."""
    return _LINES


def malformed_calls(contract: Path, known: dict[str, Any]) -> Iterator[Call]:
    """Give payloads for every channel of the contract with one field missing, odd or too many.

    `known` are the values of fields that name something that exists.
    """
    document = json.loads(contract.read_bytes())
    methods = sorted(document["methods"], key=lambda method: method["name"] == "project:delete")
    for method in methods:
        if method["name"] in UNASKED or method["name"].startswith("e2e:"):
            continue
        names = {param["name"]: param["required"] for param in method["params"]}
        usual = {name: known[name] for name in names if name in known}
        for name in names:
            yield method["name"], {key: text for key, text in usual.items() if key != name}
            for odd in _ODD_VALUES:
                yield method["name"], usual | {name: odd}
        yield method["name"], []
        yield method["name"], usual | {"noSuchField": 1}
