"""`creonowd why` — why the model knows something or does not, in a sentence, and what to do."""

import argparse
from pathlib import Path
from typing import Any

from creonowd.cli.assemble import END_OF_DOCUMENT, GENERAL, document_id, wait_for_index
from creonowd.cli.client import connect, show, terminal_safe, write
from creonowd.errors import Language, Wording
from creonowd.settings import console_language, user_data_dir

_REMEDIES = {
    "pin": Wording(
        "Pin {sourceRef} (on the page of `creonowd view`).",
        "钉住 {sourceRef}（在 creonowd view 的页面上）。",
    ),
    "raise_budget": Wording(
        "Raise the budget to {totalBudgetTokens} (on the same page).",
        "把预算提高到 {totalBudgetTokens}（在同一页面上）。",
    ),
    "set_inject": Wording(
        "Write `inject: {inject}` into {path}.", "在 {path} 里写上 inject: {inject}。"
    ),
    "fix_file": Wording("Edit {path}, line {line}.", "修改 {path} 第 {line} 行。"),
    "change_skill": Wording(
        "Use a skill that asks for {need}, or none.", "换用要求 {need} 的技能，或不用技能。"
    ),
    "widen_window": Wording(
        "Use a skill with a larger `surrounding`, or none.",
        "换用 surrounding 更大的技能，或不用技能。",
    ),
    "move_cursor": Wording(
        "Go to {documentId}, {position}.", "移到 {documentId} 的 {position} 处。"
    ),
    "mention": Wording("Mention {name} in the text.", "在正文里提到{name}。"),
    "include_file": Wording(
        "Stop ignoring {path}: change line {line} of {ignoreFile}.",
        "不再忽略 {path}：改 {ignoreFile} 第 {line} 行。",
    ),
    "wait": Wording("Try again in a moment.", "稍后再试。"),
    "write_down": Wording("Write down who or what {name} is.", "把{name}写进设定。"),
}
_WITHOUT_LINE = {
    "fix_file": Wording("Edit {path}.", "修改 {path}。"),
    "include_file": Wording("Stop ignoring {path}.", "不再忽略 {path}。"),
}


class _FieldsOrEllipsis(dict[str, Any]):
    """The fields of a remedy; one that it lacks is shown as an ellipsis."""

    def __missing__(self, key: str) -> str:
        return "…"


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "why",
        parents=[shared],
        description="Say whether the model knows something, why not, and what would change that.",
    )
    parser.add_argument("about", metavar="WHAT", help="a name, a chapter, a file, or any words")
    parser.add_argument(
        "--project", type=Path, required=True, metavar="DIR", help="the folder of the novel"
    )
    parser.add_argument("--document", required=True, metavar="PATH", help="in the project")
    parser.add_argument("--cursor", type=int, metavar="N", help="in code points (default: the end)")
    parser.add_argument(
        "--skill", default=GENERAL, metavar="ID", help="such as builtin:continue (default: all)"
    )
    parser.add_argument("--json", action="store_true", help="the whole answer, for scripts")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Ask once and print the answer."""
    chinese = console_language() is Language.CHINESE
    root = arguments.project.expanduser().absolute()
    document = document_id(root, arguments.document)
    with connect(user_data_dir(arguments.user_data), None) as client:
        granted = client.request("session:grant", {"role": "owner", "inspects": True})
        client.request(
            "initialize", {"token": granted["token"], "locale": "zh-CN" if chinese else "en"}
        )
        project = client.request("project:create", {"rootPath": str(root)})["projectId"]
        wait_for_index(client, project, document)
        cursor = END_OF_DOCUMENT if arguments.cursor is None else arguments.cursor
        answer = client.request(
            "context:explain",
            {
                "projectId": project,
                "documentId": document,
                "cursorPosition": cursor,
                "skillId": None if arguments.skill == GENERAL else arguments.skill,
                "about": arguments.about,
                "debugMode": True,
            },
        )
    if arguments.json:
        show(answer)
    else:
        write("".join(f"{terminal_safe(line)}\n" for line in _lines(answer, chinese=chinese)))
    return 0


def _lines(answer: dict[str, Any], *, chinese: bool) -> list[str]:
    """Return the sentence, what it quotes, and what to do."""
    lines = [answer["sentence"]]
    if quote := answer.get("quote"):
        lines.append(f"  “{quote}”")
    for remedy in answer["remedies"]:
        wording = _REMEDIES[remedy["do"]]
        if "line" not in remedy:
            wording = _WITHOUT_LINE.get(remedy["do"], wording)
        lines.append(f"→ {wording.text(chinese=chinese).format_map(_FieldsOrEllipsis(remedy))}")
    return lines
