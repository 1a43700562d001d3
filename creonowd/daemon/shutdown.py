"""What ends a daemon: signals, the end of its parent, and a watchdog for a slow end."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

WATCHDOG_SECONDS = 5.0
PARENT_POLL_SECONDS = 0.5
EXIT_STATUS_STUCK = 70
ENDING = ("SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP")
# By default each of these kills a process without a word.
MEANINGLESS = ("SIGUSR1", "SIGUSR2", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGIO", "SIGPWR")

Exit = Callable[[str], None]


class Shutdown:
    """Call `leave(reason)` on the event loop when a signal arrives or the parent ends."""

    def __init__(self, leave: Exit) -> None:
        self._leave = leave
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        self._watched: set[int] = set()

    def catch_signals(self) -> None:
        """Drain on the signals that end a program, and ignore those that mean nothing to a daemon."""
        for name in ENDING:
            if (number := getattr(signal, name, None)) is not None:
                signal.signal(number, self._on_signal)
        for name in MEANINGLESS:
            if (number := getattr(signal, name, None)) is not None:
                signal.signal(number, signal.SIG_IGN)

    def watch_parent(self, pid: int) -> None:
        """End when the process `pid` does; ignored if it is not running or is watched already."""
        if pid in self._watched or not is_alive(pid):
            return
        self._watched.add(pid)
        threading.Thread(target=self._poll, args=(pid,), name="parent", daemon=True).start()

    def arm_watchdog(self) -> None:
        """Kill this process unless it ends within `WATCHDOG_SECONDS`."""
        timer = threading.Timer(WATCHDOG_SECONDS, os._exit, args=(EXIT_STATUS_STUCK,))
        timer.daemon = True
        timer.start()

    def stop_watching(self) -> None:
        """Stop polling the parent."""
        self._over.set()

    def _on_signal(self, number: int, _frame: object) -> None:
        self._end(f"signal {signal.Signals(number).name}")

    def _poll(self, pid: int) -> None:
        while not self._over.wait(PARENT_POLL_SECONDS):
            if not is_alive(pid):
                self._end(f"parent {pid} died")
                return

    def _end(self, reason: str) -> None:
        self.arm_watchdog()
        try:
            self._loop.call_soon_threadsafe(self._leave, reason)
        except RuntimeError:
            return


if sys.platform == "win32":
    import ctypes

    _STILL_ACTIVE = 259
    _QUERY = 0x1000

    def is_alive(pid: int) -> bool:
        """Return whether a process with this id is running."""
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(_QUERY, 0, pid)
        if not handle:
            return False
        code = ctypes.c_ulong()
        kernel.GetExitCodeProcess(handle, ctypes.byref(code))
        kernel.CloseHandle(handle)
        return code.value == _STILL_ACTIVE

else:

    def is_alive(pid: int) -> bool:
        """Return whether a process with this id is running; a zombie does not count."""
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return not _is_zombie(pid)

    def _is_zombie(pid: int) -> bool:
        try:
            status = Path(f"/proc/{pid}/stat").read_bytes()
        except OSError:
            return False
        return status.rpartition(b")")[2].split()[:1] == [b"Z"]
