"""The command line: one module per command."""

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from creonowd import __version__
from creonowd.errors import DaemonError, Language
from creonowd.settings import console_language

EPILOG = """examples:
  echo '{"jsonrpc":"2.0","id":1,"method":"app:ping"}' | creonowd serve --stdio
  creonowd call --list
  creonowd call context:assemble --help
  creonowd call project:create '{"rootPath": "/path/to/novel"}'
  creonowd init /path/to/novel
  creonowd check /path/to/novel
  creonowd assemble --project /path/to/novel --document chapters/07.md
  creonowd why "Wickham" --project /path/to/novel --document chapters/07.md
  creonowd skill lint .creonow/skills
  creonowd view --project /path/to/novel
  creonowd ai add deepseek
  creonowd doctor
  creonowd usage --by model
"""


COMMANDS = {
    "serve": "run the daemon",
    "call": "call a channel of the running daemon",
    "init": "write a commented .creonow folder for a novel",
    "check": "list what an AI call would make of each file in .creonow",
    "assemble": "show what the model would get to see",
    "why": "say why the model knows something or does not",
    "view": "look into what the model sees, in a browser",
    "doctor": "find out what is wrong and how to fix it",
    "skill": "check skills",
    "usage": "show what calls to models used and cost",
    "mcp": "serve a project to an agent that speaks MCP",
    "ai": "add, list, choose, test and remove the models that answer",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; errors are printed to stderr."""
    words = sys.argv[1:] if argv is None else list(argv)
    if not words:
        parser("").print_help(sys.stderr)
        return 2
    arguments = parser(words[0]).parse_args(words)
    try:
        return arguments.run(arguments)
    except DaemonError as error:
        chinese = console_language() is Language.CHINESE
        _print_error(f"{error.wording.text(chinese=chinese)} [{error.code}]")
        return 1
    except BrokenPipeError:
        return 1
    except OSError as error:
        _print_error(f"{error}")
        return 1
    except KeyboardInterrupt:
        return 130


def _print_error(message: str) -> None:
    from creonowd.cli.client import sentence, write

    write(f"creonowd: {sentence(message)}\n", sys.stderr)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are safe to show: an argument may be any file's name, by a shell's `*`."""

    def error(self, message: str) -> NoReturn:
        from creonowd.cli.client import sentence

        super().error(sentence(message))


def parser(chosen: str) -> argparse.ArgumentParser:
    """Describe every command; only the module of the chosen one is loaded."""
    top = _Parser(
        prog="creonowd",
        description="The context engine of CreoNow, as a local daemon that speaks JSON-RPC.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"creonowd {__version__}")
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument(
        "--user-data",
        type=Path,
        metavar="DIR",
        help="where the daemon keeps its data (default: CREONOW_USER_DATA_DIR, else the platform's place)",
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        if name == chosen:
            import_module(f"{__name__}.{name}").add(commands, shared)
        else:
            commands.add_parser(name, help=summary)
    return top
