"""Run the daemon of one checkout, and of no other: `launch.py FOLDER [--trace ADDRESS] ARGUMENTS`.

Started by its path with the interpreter of any environment, also one in which another checkout is
installed. With `--trace` the functions that are entered are recorded between two marks.
"""

import inspect
import os
import runpy
import sys
import threading
from multiprocessing.connection import Client, Connection
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NoReturn

PACKAGE = "creonowd"


class Trace:
    """The functions of one folder that were entered since `start`, each once, in order."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._prefix = f"{folder}{os.sep}"
        self._recording = False
        self._entered: dict[int, CodeType] = {}

    def install(self, address: str) -> None:
        """Profile every thread from now on; marks from `address` begin and end a recording."""
        connection = Client(address)
        threading.Thread(target=self._receive_marks, args=(connection,), daemon=True).start()
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, _: Any) -> None:
        if not self._recording or event != "call":
            return
        code = frame.f_code
        if id(code) not in self._entered and code.co_filename.startswith(self._prefix):
            self._entered[id(code)] = code

    def _receive_marks(self, connection: Connection) -> None:
        while True:
            try:
                mark = connection.recv()
            except EOFError:
                return
            if mark == "start":
                self._entered = {}
            self._recording = mark != "stop"
            connection.send(self._functions())

    def _functions(self) -> list[tuple[str, str]]:
        """List file and function; bodies of modules and classes and comprehensions are none."""
        return [
            (Path(code.co_filename).relative_to(self._folder).as_posix(), code.co_qualname)
            for code in list(self._entered.values())
            if code.co_flags & inspect.CO_OPTIMIZED
            and (not code.co_name.startswith("<") or code.co_name == "<lambda>")
        ]


def main() -> None:
    """Put the folder in front of everything that is installed, make sure of it, and run."""
    folder = Path(sys.argv[1]).resolve()
    rest = sys.argv[2:]
    sys.path[0] = str(folder)
    _check(folder / PACKAGE)
    if rest[:1] == ["--trace"]:
        _keep_descriptors()
        Trace(folder / PACKAGE).install(rest[1])
        rest = rest[2:]
    sys.argv = [PACKAGE, *rest]
    runpy.run_module(PACKAGE, run_name="__main__", alter_sys=True)


def _keep_descriptors() -> None:
    """Keep the daemon from closing what it did not open itself: the connection of the trace."""
    from creonowd.transports import stdio

    # Earlier checkouts close nothing.
    if hasattr(stdio, "close_inherited"):
        stdio.close_inherited = lambda: None


def _check(expected: Path) -> None:
    """Fail unless the package is that of this folder, whatever is installed."""
    import creonowd

    found = Path(creonowd.__file__).resolve().parent
    if found != expected:
        _fail(f"imported {found}, not {expected}")


def _fail(message: str) -> NoReturn:
    raise SystemExit(f"launch: {message}")


if __name__ == "__main__":
    main()
