"""`creonowd assemble` — what the model would get to see, in the shell."""

import argparse
import contextlib
import difflib
import sys
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import msgspec

from creonowd.cli.client import Client, connect, pad, show, terminal_safe, width, write
from creonowd.context.fragment import Layer
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode, Language, Wording
from creonowd.model import Model
from creonowd.settings import console_language, user_data_dir
from creonowd.storage import stored_files
from creonowd.workspace.creonow_tree import is_document

FOLDER = "assemble"
VERSION = 1
GENERAL = "general"
END_OF_DOCUMENT = 2**53 - 1
CURSOR_CLAMPED = "CONTEXT_CURSOR_CLAMPED"
SKILL_UNKNOWN = "SKILL_UNKNOWN"
IMMEDIATE_UNAVAILABLE = "IMMEDIATE_UNAVAILABLE"
BAR_WIDTH = 28
LONGEST_WAIT_MS = 600_000
MOST_LOOKED_AT = 10_000

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
    form.add_argument("--prompt", action="store_true", help="the exact prompt, byte for byte")
    parser.add_argument(
        "--no-wait", action="store_true", help="do not wait for the index of passages"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Assemble once and print the result."""
    user_data = user_data_dir(arguments.user_data)
    chinese = console_language() is Language.CHINESE
    root = arguments.project.expanduser().absolute()
    document = document_id(root, arguments.document)
    with connect(user_data, None) as client:
        result, budget = _assemble(client, root, document, arguments)
    last = LastAssembly(user_data, (str(root), document, arguments.skill))
    before = last.read()
    last.write(result)
    if arguments.json:
        show(result)
    elif arguments.prompt:
        # A program gets the exact prompt; at a terminal its control characters are escaped.
        write(result["prompt"], painted=not sys.stdout.isatty())
    elif arguments.diff:
        write(differences(before, result, chinese=chinese))
    else:
        colour = sys.stdout.isatty()
        shown = view(terminal_safe(result), budget, colour=colour, chinese=chinese)
        write(shown, painted=True)
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
    if not arguments.no_wait:
        wait_for_index(client, project, document)
    result = client.request("context:assemble", payload)
    codes = {notice["code"] for notice in result["notices"]}
    if SKILL_UNKNOWN in codes and arguments.skill != GENERAL:
        raise _unknown_skill(client, project, arguments.skill)
    is_open = _shows(result, document) and IMMEDIATE_UNAVAILABLE not in codes
    if not (root / document).is_file() and not is_open:
        raise _unknown_document(root, document)
    expected: set[str] = set()
    if arguments.cursor is None:
        expected.add(CURSOR_CLAMPED)
    pairs = zip(result["warnings"], result["notices"], strict=True)
    kept = [(text, notice) for text, notice in pairs if notice["code"] not in expected]
    result["warnings"] = [text for text, _ in kept]
    result["notices"] = [notice for _, notice in kept]
    return result, client.request("context:budget:get", {"projectId": project})


def wait_for_index(client: Client, project: str, document: str) -> None:
    """Wait until the index is complete."""
    payload = {
        "projectId": project,
        "documentId": document,
        "cursorPosition": 0,
        "limit": 1,
        "wait": True,
        "_meta": {"timeoutMs": LONGEST_WAIT_MS},
    }
    # Without an index the assembly goes on, and warns.
    with contextlib.suppress(DaemonError):
        client.request("context:retrieve", payload)


def _shows(result: Reply, document: str) -> bool:
    """Return whether a document that is not on disk is open in an editor."""
    immediate = (entry for entry in result["trimEvidence"] if entry["layer"] == "immediate")
    return any(entry["sourceRef"].partition("#")[0] == document for entry in immediate)


def _unknown_skill(client: Client, project: str, name: str) -> DaemonError:
    items = client.request("skill:list", {"projectId": project})["items"]
    known = {**{item["slug"]: item["id"] for item in items}, **{i["id"]: i["id"] for i in items}}
    near = difflib.get_close_matches(name, known, n=1)
    wording = Wording("There is no skill {}.", "没有技能 {}。").format(name)
    listed = ", ".join(item["id"] for item in items)
    return _not_found(wording, known[near[0]] if near else "", listed)


def _unknown_document(root: Path, name: str) -> DaemonError:
    """Suggest a document of the same folder, or one of the same name in another."""
    found = islice(
        (path for path in root.rglob("*") if is_document(_ref(root, path))), MOST_LOOKED_AT
    )
    known = [_ref(root, path) for path in found]
    names = {path.rpartition("/")[2]: path for path in known}
    near = difflib.get_close_matches(name, known, n=1)
    own = difflib.get_close_matches(name.rpartition("/")[2], names, n=1)
    suggestion = near[0] if near else names[own[0]] if own else ""
    wording = Wording("There is no document {} in this project.", "此项目中没有文档 {}。").format(
        name
    )
    return _not_found(wording, suggestion, "")


def _ref(root: Path, path: Path) -> str:
    return path.relative_to(root).as_posix()


def _not_found(wording: Wording, suggestion: str, listed: str) -> DaemonError:
    advice = Wording("", "")
    if suggestion:
        advice = Wording(" Did you mean {}?", "您要的是 {} 吗？").format(suggestion)
    elif listed:
        advice = Wording(" There are: {}.", "现有：{}。").format(listed)
    english, chinese = wording.english + advice.english, wording.chinese + advice.chinese
    return DaemonError(ErrorCode.NOT_FOUND, Wording(english, chinese))


def document_id(root: Path, name: str) -> str:
    """Return the project-relative path of a document that is named from the working directory."""
    path = Path(name)
    candidates = [path] if path.is_absolute() else [root / path, Path.cwd() / path]
    found = next((each for each in candidates if each.is_file()), candidates[0])
    try:
        return found.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        wording = Wording(
            "The document lies outside the project; name one in it.",
            "文档不在项目之内；请指定项目内的文档。",
        )
        raise DaemonError(ErrorCode.INVALID_ARGUMENT, wording) from None


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
            data = stored_files.content(self._path, limit=stored_files.LIMIT_BYTES) or b""
            stored = msgspec.json.decode(data, type=StoredAssembly)
        except (DaemonError, *endpoint.NOT_JSON):
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
        stored_files.replace(self._path, msgspec.json.encode(stored))


def view(result: Reply, budget: Reply, *, colour: bool = False, chinese: bool = False) -> str:
    """Return the layers, the decision on every candidate and the hashes as text."""
    lines = [
        *_bars(result, budget, chinese=chinese),
        "",
        *_decisions(result["trimEvidence"], colour=colour, chinese=chinese),
        *(f"! {notice['code']}: {notice['message']}" for notice in result["notices"]),
        *_redactions(result["redactionEvidence"], chinese=chinese),
        "",
        *_hashes(result, chinese=chinese),
    ]
    return "\n".join(lines) + "\n"


def differences(before: StoredAssembly | None, result: Reply, *, chinese: bool = False) -> str:
    """Return what changed in the prompt since the last call, line by line."""
    if before is None:
        return _NO_EARLIER_CALL.text(chinese=chinese) + "\n"
    if before.prompt_hash == result["promptHash"]:
        return _UNCHANGED.format(result["tokenCount"]).text(chinese=chinese) + "\n"
    changed = difflib.unified_diff(
        before.prompt.splitlines(),
        result["prompt"].splitlines(),
        _LAST_TIME.format(before.token_count).text(chinese=chinese),
        _THIS_TIME.format(result["tokenCount"]).text(chinese=chinese),
        lineterm="",
        n=1,
    )
    return "\n".join(changed) + "\n"


_NO_EARLIER_CALL = Wording(
    "There is no earlier call to compare with.", "没有可供比较的上一次调用。"
)
_UNCHANGED = Wording(
    "The prompt is the same as last time ({} tokens).", "提示词与上次相同（{} tokens）。"
)
_LAST_TIME = Wording("last ({} tokens)", "上次（{} tokens）")
_THIS_TIME = Wording("now ({} tokens)", "本次（{} tokens）")
_AVAILABLE = Wording("of {} available, minimum {}{}", "候选 {}，至少 {}{}")
LAYERS = {
    Layer.RULES: Wording("rules", "规则"),
    Layer.SETTINGS: Wording("settings", "设定"),
    Layer.RETRIEVED: Wording("retrieved", "召回"),
    Layer.IMMEDIATE: Wording("immediate", "即时"),
}
_TEMPLATE = Wording("template", "固定")
_TOTAL = Wording("total", "合计")
_COLUMN_CUT = Wording("  cut", "  有删减")
_NOT_OWN = Wording("{}, not the model's own", "{}，并非该模型自己的")
_LIMIT = Wording("of {} ({})", "上限 {}（{}）")
_TAKEN_OUT = Wording("{} × {} taken out of {}", "{} × {} 已从 {} 中隐去")


def _bars(result: Reply, budget: Reply, *, chinese: bool) -> Iterator[str]:
    total = result["budget"]["maxInputTokens"]
    tokenizer = result["tokenizerId"]
    if not result["tokenizerExact"]:
        tokenizer = _NOT_OWN.format(tokenizer).text(chinese=chinese)
    rows = [
        (LAYERS[layer], result["layers"][layer]["tokens"], _offer(result, budget, layer))
        for layer in Layer
    ]
    rows.append((_TEMPLATE, result["fixedTokens"], Wording("", "")))
    rows.append((_TOTAL, result["tokenCount"], _LIMIT.format(total, tokenizer)))
    names = [name.text(chinese=chinese) for name, _, _ in rows]
    widest = max(map(width, names))
    for name, (_, tokens, note) in zip(names, rows, strict=True):
        wording = note.text(chinese=chinese)
        yield f"{pad(name, widest)}  {_bar(tokens, total)} {tokens:>6} tokens  {wording}".rstrip()


def _offer(result: Reply, budget: Reply, layer: Layer) -> Wording:
    wanted = result["budget"]["estimate"][f"{layer}Tokens"]
    minimum = budget["layers"][layer]["minimumTokens"]
    cut = _COLUMN_CUT if result["layers"][layer]["truncated"] else Wording("", "")
    return _AVAILABLE.format(f"{wanted:>6}", f"{minimum:>5}", cut)


def _bar(tokens: int, total: int) -> str:
    full = min(BAR_WIDTH, round(BAR_WIDTH * tokens / max(1, total)))
    return "█" * full + "░" * (BAR_WIDTH - full)


def _decisions(evidence: Sequence[Reply], *, colour: bool, chinese: bool) -> Iterator[str]:
    """Yield one line per candidate; the kept parts of one file share a line."""
    rows: list[tuple[str, str, str, str, str]] = []
    for (layer, file, action, rule), group in groupby(evidence, key=_group_key):
        entries = list(group)
        before = sum(entry["beforeTokens"] for entry in entries)
        after = sum(entry["afterTokens"] for entry in entries)
        name = entries[0]["sourceRef"] if len(entries) == 1 else f"{file} × {len(entries)}"
        tokens = f"{after}" if action == "kept" else f"{before}→{after}"
        reason = "" if action == "kept" else f"{entries[0]['reason']}, {rule}"
        rows.append((action, LAYERS[Layer(layer)].text(chinese=chinese), tokens, name, reason))
    widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
    for action, layer, tokens, name, reason in rows:
        mark = _paint(_MARKS[action], _COLOURS[action]) if colour else _MARKS[action]
        cells = (pad(layer, widths[1]), pad(tokens, widths[2], right=True), pad(name, widths[3]))
        yield f"{mark} {'  '.join((*cells, reason)).rstrip()}"


def _group_key(entry: Reply) -> tuple[str, str, str, str]:
    file = entry["sourceRef"].partition("#")[0]
    return (entry["layer"], file, entry["action"], entry["rule"])


def _redactions(evidence: Sequence[Reply], *, chinese: bool) -> Iterator[str]:
    for found in evidence:
        line = _TAKEN_OUT.format(found["matchCount"], found["patternId"], found["sourceRef"])
        yield f"* {line.text(chinese=chinese)}"


def _hashes(result: Reply, *, chinese: bool) -> Iterator[str]:
    state = Wording("new", "新")
    if result["stablePrefixUnchanged"]:
        state = Wording("unchanged", "未变")
    change = result.get("prefixChange")
    if change is not None:
        state = _CHANGES[change["change"]].format(change["sourceRef"])
    points = {point["after"]: point for point in result.get("cacheBreakPoints", [])}
    whole = points.get("systemPrompt")
    if whole is not None and not whole["reachesMinimum"]:
        short = _TOO_SHORT.format(whole["tokens"], whole["minimumTokens"])
        state = Wording("{}; {}", "{}；{}").format(state, short)
    yield f"stable prefix  {result['stablePrefixHash']}  {state.text(chinese=chinese)}"
    yield f"prompt         {result['promptHash']}"


_TOO_SHORT = Wording("too short to be cached ({} of {})", "过短，不会被缓存（{} / {}）")
_CHANGES = {
    "added": Wording("changed: {} was added", "已变：新增 {}"),
    "removed": Wording("changed: {} was removed", "已变：移除 {}"),
    "changed": Wording("changed: {} was changed", "已变：{} 有改动"),
    "reordered": Wording("changed: {} was reordered", "已变：{} 顺序变动"),
}


def _paint(text: str, colour: str) -> str:
    return f"\x1b[{colour}m{text}\x1b[0m"
