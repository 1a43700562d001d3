"""`creonowd serve` — run the daemon."""

import argparse
from pathlib import Path
from typing import Any

from creonowd.settings import user_data_dir

LARGEST_PORT = 65535


def add(commands: Any, shared: argparse.ArgumentParser) -> None:
    """Describe the command."""
    parser = commands.add_parser(
        "serve",
        parents=[shared],
        description="Run the daemon until stdin ends, its parent dies or it is asked to stop. "
        "`creonowd call`, `assemble` and `view` find it by themselves.",
    )
    parser.add_argument("--stdio", action="store_true", help="serve stdin and stdout (the default)")
    parser.add_argument(
        "--socket",
        nargs="?",
        const="",
        metavar="PATH",
        help="serve the user's socket, or the one at PATH, and not stdio",
    )
    parser.add_argument(
        "--tcp", type=_port, metavar="PORT", help="also loopback TCP; 0 picks a port"
    )
    parser.add_argument(
        "--websocket", type=_port, metavar="PORT", help="also a loopback WebSocket; 0 picks a port"
    )
    parser.add_argument(
        "--debug", action="store_true", default=None, help="allow context:inspect to owners"
    )
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) <= LARGEST_PORT):
        raise argparse.ArgumentTypeError(f"a port is a number between 0 and {LARGEST_PORT}")
    return int(text)


def run(arguments: argparse.Namespace) -> int:
    """Claim stdout for the protocol before anything can print, then serve."""
    from creonowd.transports import stdio

    detached = arguments.socket is not None or arguments.tcp is not None
    over_stdio = arguments.stdio or not (detached or arguments.websocket is not None)
    if over_stdio:
        stdio.close_inherited()
    output = stdio.claim_stdout() if over_stdio else None

    from creonowd.daemon.run import Options, serve

    return serve(
        Options(
            user_data=user_data_dir(arguments.user_data),
            output=output,
            socket=Path(arguments.socket).absolute() if arguments.socket else None,
            tcp_port=arguments.tcp,
            websocket_port=arguments.websocket,
            flags={"debug": arguments.debug},
        )
    )
