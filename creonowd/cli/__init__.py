"""The command line. Reads arguments, calls one command, returns its exit status."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from creonowd import __version__
from creonowd.errors import DaemonError

EPILOG = """examples:
  echo '{"jsonrpc":"2.0","id":1,"method":"app:ping"}' | creonowd serve --stdio
  creonowd call project:create '{"rootPath": "/path/to/novel"}'
  creonowd assemble --project /path/to/novel --document chapters/07.md
  creonowd skill lint .creonow/skills
  creonowd view --project /path/to/novel
  creonowd doctor
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; errors go to stderr, in words."""
    arguments = parser().parse_args(argv)
    try:
        return arguments.run(arguments)
    except DaemonError as error:
        sys.stderr.write(f"creonowd: {error.message} [{error.code}]\n")
        return 1
    except KeyboardInterrupt:
        return 130


def parser() -> argparse.ArgumentParser:
    """Describe every command."""
    from creonowd.cli import assemble, call, doctor, serve, skill

    top = argparse.ArgumentParser(
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
    for command in (serve, call, assemble, doctor, skill):
        command.add(commands, shared)
    return top
