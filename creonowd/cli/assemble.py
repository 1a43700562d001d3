"""`creonowd assemble` — what the model would get to see, in the shell."""

import argparse
import sys
from pathlib import Path
from typing import Any

from creonowd.cli.assembly_view import differences, view
from creonowd.cli.client import Client, connect
from creonowd.cli.last_assembly import LastAssembly
from creonowd.cli.output import show, write
from creonowd.errors import DaemonError, ErrorCode
from creonowd.settings import user_data_dir

END = 2**53 - 1
GENERAL = "general"
CLAMPED = "CONTEXT_CURSOR_CLAMPED"
UNKNOWN = "SKILL_UNKNOWN"


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
    """Assemble once and print what came of it."""
    user_data = user_data_dir(arguments.user_data)
    root = arguments.project.expanduser().absolute()
    document = _document_id(root, arguments.document)
    with connect(user_data) as client:
        result, budget = _assembled(client, root, document, arguments)
    last = LastAssembly(user_data, (str(root), document, arguments.skill))
    before = last.recall()
    last.remember(result)
    if arguments.json:
        show(result)
    elif arguments.diff:
        write(differences(before, result))
    else:
        write(view(result, budget, colour=sys.stdout.isatty()))
    return 0


def _assembled(
    client: Client, root: Path, document: str, arguments: argparse.Namespace
) -> tuple[dict[str, Any], dict[str, Any]]:
    project = client.request("project:create", {"rootPath": str(root)})["projectId"]
    payload = {
        "projectId": project,
        "documentId": document,
        "cursorPosition": END if arguments.cursor is None else arguments.cursor,
        "skillId": arguments.skill,
        "additionalInput": arguments.input,
        "model": arguments.model,
    }
    result = client.request("context:assemble", payload)
    meant = {CLAMPED} if arguments.cursor is None else set[str]()
    meant |= {UNKNOWN} if arguments.skill == GENERAL else set()
    result["warnings"] = [text for text in result["warnings"] if text not in meant]
    return result, client.request("context:budget:get", {"projectId": project})


def _document_id(root: Path, named: str) -> str:
    """Name a document as the daemon does, wherever the shell stands."""
    path = Path(named)
    candidates = [path] if path.is_absolute() else [root / path, Path.cwd() / path]
    found = next((each for each in candidates if each.is_file()), candidates[0])
    try:
        return found.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "The document lies outside the project; name one in it."
        ) from None
