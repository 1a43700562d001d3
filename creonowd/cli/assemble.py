"""`creonowd assemble` — what the model would get to see, in the shell."""

import argparse
import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec

from creonowd.cli.client import Client, connect, show, write
from creonowd.context.fragment import Layer
from creonowd.errors import WARNINGS, DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.settings import user_data_dir
from creonowd.storage import atomic

FOLDER = "assemble"
VERSION = 1
GENERAL = "general"
END_OF_DOCUMENT = 2**53 - 1
CURSOR_CLAMPED = "CONTEXT_CURSOR_CLAMPED"
BAR_WIDTH = 28

_MARKS = {"kept": "✓", "trimmed": "✂", "dropped": "✗"}
_COLOURS = {"kept": "32", "trimmed": "33", "dropped": "31"}

Reply = dict[str, Any]


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "assemble",
        parents=[shared],
        description="Show the layers of a prompt with token bars, what was kept or dropped and "
        "why, and the hashes.",
    )
    parser.add_argument(
        "--project", type=Path, required=True, metavar="DIR", help="the folder of the novel"
    )
    parser.add_argument("--document", required=True, metavar="PATH", help="in the project")
    parser.add_argument("--cursor", type=int, metavar="N", help="in code points (default: the end)")
    parser.add_argument(
        "--skill",
        default=GENERAL,
        metavar="ID",
        help="such as builtin:continue (default: all sources)",
    )
    parser.add_argument("--input", default="", metavar="TEXT", help="an additional instruction")
    parser.add_argument("--model", metavar="NAME", help="whose tokenizer counts")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="the whole result, for scripts")
    form.add_argument("--diff", action="store_true", help="what changed since the last call")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Assemble once and print the result."""
    user_data = user_data_dir(arguments.user_data)
    root = arguments.project.expanduser().absolute()
    document = _document_id(root, arguments.document)
    with connect(user_data) as client:
        result, budget = _assemble(client, root, document, arguments)
    last = LastAssembly(user_data, (str(root), document, arguments.skill))
    before = last.read()
    last.write(result)
    if arguments.json:
        show(result)
    elif arguments.diff:
        write(differences(before, result))
    else:
        write(view(result, budget, colour=sys.stdout.isatty()))
    return 0


def _assemble(
    client: Client, root: Path, document: str, arguments: argparse.Namespace
) -> tuple[Reply, Reply]:
    project = client.request("project:create", {"rootPath": str(root)})["projectId"]
    payload = {
        "projectId": project,
        "documentId": document,
        "cursorPosition": END_OF_DOCUMENT if arguments.cursor is None else arguments.cursor,
        "skillId": None if arguments.skill == GENERAL else arguments.skill,
        "additionalInput": arguments.input,
        "model": arguments.model,
    }
    result = client.request("context:assemble", payload)
    expected: set[str] = set()
    if arguments.cursor is None:
        expected.add(CURSOR_CLAMPED)
    result["warnings"] = [text for text in result["warnings"] if text not in expected]
    return result, client.request("context:budget:get", {"projectId": project})


def _document_id(root: Path, name: str) -> str:
    """Return the project-relative path of a document that is named from the working directory."""
    path = Path(name)
    candidates = [path] if path.is_absolute() else [root / path, Path.cwd() / path]
    found = next((each for each in candidates if each.is_file()), candidates[0])
    try:
        return found.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "The document lies outside the project; name one in it."
        ) from None


class StoredAssembly(Model):
    """What is stored of a result, for `--diff`."""

    version: int
    prompt: str
    prompt_hash: str
    token_count: int


class LastAssembly:
    """The result of the last call for a project, document and skill."""

    def __init__(self, user_data: Path, key: Iterable[str]) -> None:
        name = sha256("\0".join(key).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        self._path = user_data / FOLDER / f"{name}.json"

    def read(self) -> StoredAssembly | None:
        """Read the last result; None if there is none that can be read."""
        try:
            stored = msgspec.json.decode(self._path.read_bytes(), type=StoredAssembly)
        except (OSError, msgspec.MsgspecError):
            return None
        return stored if stored.version == VERSION else None

    def write(self, result: dict[str, Any]) -> None:
        """Store this as the last result."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        stored = StoredAssembly(
            version=VERSION,
            prompt=result["prompt"],
            prompt_hash=result["promptHash"],
            token_count=result["tokenCount"],
        )
        atomic.replace(self._path, msgspec.json.encode(stored))


def view(result: Reply, budget: Reply, *, colour: bool = False) -> str:
    """Return the layers, the decision on every candidate and the hashes as text."""
    lines = [
        *_bars(result, budget),
        "",
        *_decisions(result["trimEvidence"], colour=colour),
        *(f"! {_warning_text(warning)}" for warning in result["warnings"]),
        *_redactions(result["redactionEvidence"]),
        "",
        *_hashes(result),
    ]
    return "\n".join(lines) + "\n"


def differences(before: StoredAssembly | None, result: Reply) -> str:
    """Return what changed in the prompt since the last call, line by line."""
    if before is None:
        return "There is no earlier call to compare with.\n"
    if before.prompt_hash == result["promptHash"]:
        return f"The prompt is the same as last time ({result['tokenCount']} tokens).\n"
    changed = difflib.unified_diff(
        before.prompt.splitlines(),
        result["prompt"].splitlines(),
        f"last ({before.token_count} tokens)",
        f"now ({result['tokenCount']} tokens)",
        lineterm="",
        n=1,
    )
    return "\n".join(changed) + "\n"


def _bars(result: Reply, budget: Reply) -> Iterator[str]:
    total = result["budget"]["maxInputTokens"]
    for layer in Layer:
        summary = result["layers"][layer]
        wanted = result["budget"]["estimate"][f"{layer}Tokens"]
        minimum = budget["layers"][layer]["minimumTokens"]
        cut = "  cut" if summary["truncated"] else ""
        yield (
            f"{layer:<10} {_bar(summary['tokens'], total)} {summary['tokens']:>6} tokens"
            f"  of {wanted} offered, {minimum} promised{cut}"
        )
    yield f"{'template':<10} {_bar(result['fixedTokens'], total)} {result['fixedTokens']:>6} tokens"
    exact = "" if result["tokenizerExact"] else ", not the model's own"
    yield (
        f"{'total':<10} {_bar(result['tokenCount'], total)} {result['tokenCount']:>6} tokens"
        f"  of {total} ({result['tokenizerId']}{exact})"
    )


def _bar(tokens: int, total: int) -> str:
    full = min(BAR_WIDTH, round(BAR_WIDTH * tokens / max(1, total)))
    return "█" * full + "░" * (BAR_WIDTH - full)


def _decisions(evidence: Sequence[Reply], *, colour: bool) -> Iterator[str]:
    """Yield one line per candidate; the kept parts of one file share a line."""
    for (layer, file, action, rule), group in groupby(evidence, key=_group_key):
        entries = list(group)
        before = sum(entry["beforeTokens"] for entry in entries)
        after = sum(entry["afterTokens"] for entry in entries)
        name = entries[0]["sourceRef"] if len(entries) == 1 else f"{file} × {len(entries)}"
        tokens = f"{after}" if action == "kept" else f"{before}→{after}"
        reason = "" if action == "kept" else f"  {entries[0]['reason']}, {rule}"
        mark = _paint(_MARKS[action], _COLOURS[action]) if colour else _MARKS[action]
        yield f"{mark} {layer:<10} {tokens:>12}  {name}{reason}"


def _group_key(entry: Reply) -> tuple[str, str, str, str]:
    file = entry["sourceRef"].partition("#")[0]
    return (entry["layer"], file, entry["action"], entry["rule"])


def _warning_text(warning: str) -> str:
    """Return the meaning of a warning, and its own text if that says more."""
    code, _, text = warning.partition(": ")
    meaning = next((known for name, known in WARNINGS.items() if name == code), None)
    if meaning is None:
        return warning
    more = "" if text in {"", meaning.chinese} else f" ({text})"
    return f"{code}: {meaning.english}{more}"


def _redactions(evidence: Sequence[Reply]) -> Iterator[str]:
    for found in evidence:
        yield f"* {found['matchCount']} × {found['patternId']} taken out of {found['sourceRef']}"


def _hashes(result: Reply) -> Iterator[str]:
    state = "unchanged" if result["stablePrefixUnchanged"] else "new"
    change = result.get("prefixChange")
    if change is not None:
        state = f"changed: {change['sourceRef']} was {change['change']}"
    yield f"stable prefix  {result['stablePrefixHash']}  {state}"
    yield f"prompt         {result['promptHash']}"


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"
