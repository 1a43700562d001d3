"""`creonowd mcp` — the project's context, manuscript and story for any agent that speaks MCP."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from creonowd.cli.client import program, write
from creonowd.errors import DaemonError, ErrorCode, Wording, extra_missing
from creonowd.settings import user_data_dir

_NO_FOLDER = Wording("{} is no folder.", "{} 不是文件夹。")


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "mcp",
        parents=[shared],
        description="Serve a project's context files, manuscript and story to an agent, by MCP over"
        " standard input and output. It uses the running daemon, else starts one.",
    )
    parser.add_argument(
        "--project", type=Path, default=Path(), metavar="DIR", help="default: the current folder"
    )
    parser.add_argument(
        "--conversation",
        default="",
        metavar="ID",
        help="whose context files; default: one per project",
    )
    parser.add_argument(
        "--write", action="store_true", help="also offer tools that change something"
    )
    parser.add_argument(
        "--print-config",
        action="store_true",
        help="print the configuration of the usual hosts for this server",
    )
    parser.add_argument(
        "--print-skill",
        action="store_true",
        help="print a SKILL.md that teaches an agent these tools",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until standard input ends."""
    root = arguments.project.absolute()
    if arguments.print_skill:
        write(skill_file().read_text(encoding="utf-8"))
        return 0
    if not root.is_dir():
        raise DaemonError(ErrorCode.NOT_FOUND, _NO_FOLDER.format(root))
    if arguments.print_config:
        write(configurations(_command(arguments, root)))
        return 0
    try:
        from creonowd.mcp.mcp_server import serve_project
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"mcp", "mcp_types", "pydantic"}:
            raise
        raise DaemonError(ErrorCode.UNSUPPORTED, extra_missing("mcp")) from None
    serve_project(
        user_data_dir(arguments.user_data), root, arguments.conversation, write=arguments.write
    )
    return 0


def skill_file() -> Path:
    """Return where the SKILL.md for agents lies in the package."""
    return Path(__file__).parents[1] / "mcp" / "creonow" / "SKILL.md"


def _command(arguments: argparse.Namespace, root: Path) -> list[str]:
    words = [*program(), "mcp", "--project", str(root)]
    if arguments.user_data is not None:
        words += ["--user-data", str(arguments.user_data.absolute())]
    if arguments.conversation:
        words += ["--conversation", arguments.conversation]
    return [*words, "--write"] if arguments.write else words


def configurations(command: list[str]) -> str:
    """Return the snippet for each of the usual hosts."""
    server = {"command": command[0], "args": command[1:]}
    parts = [f"{title}\n\n{snippet(server)}" for title, snippet in _HOSTS]
    return "\n\n".join(parts) + "\n"


def _json(*path: str, **more: Any) -> Callable[[dict[str, Any]], str]:
    def snippet(server: dict[str, Any]) -> str:
        value: Any = more | server
        for key in reversed(path):
            value = {key: value}
        return json.dumps(value, ensure_ascii=False, indent=2)

    return snippet


def _toml(server: dict[str, Any]) -> str:
    # A JSON string or list of strings is one of TOML too.
    lines = (f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in server.items())
    return "\n".join(["[mcp_servers.creonow]", *lines])


def _opencode(server: dict[str, Any]) -> str:
    command = [server["command"], *server["args"]]
    value = {"mcp": {"creonow": {"type": "local", "command": command}}}
    return json.dumps(value, ensure_ascii=False, indent=2)


_HOSTS: tuple[tuple[str, Callable[[dict[str, Any]], str]], ...] = (
    (
        "Claude Code (.mcp.json), Claude Desktop, Cursor (.cursor/mcp.json), Cline, Trae",
        _json("mcpServers", "creonow"),
    ),
    ("VS Code (.vscode/mcp.json)", _json("servers", "creonow", type="stdio")),
    ("Codex (~/.codex/config.toml)", _toml),
    (
        "Gemini CLI and Qwen Code (.gemini/settings.json, .qwen/settings.json)",
        _json("mcpServers", "creonow"),
    ),
    ("Zed (settings.json)", _json("context_servers", "creonow", source="custom")),
    ("opencode (opencode.json)", _opencode),
)
