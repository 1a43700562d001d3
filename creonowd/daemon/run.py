"""One daemon from start to end: settings, lock, transports, services, drain.

The transports open first and `app:ping` is answered at once. Every other channel needs imports of
some 350 ms (2026, two cores); they are loaded in a thread, and requests wait for them. A daemon
ends by a signal or with its parent; a watchdog ends one that is slow to end.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import structlog
from anyio.abc import TaskGroup

from creonowd import __version__, logs, signals
from creonowd import settings as configuration
from creonowd.clock import make_clock
from creonowd.daemon import endpoint, viewer_server
from creonowd.daemon.viewer_server import ViewerServer
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.memo import collect_garbage
from creonowd.redaction import Redactor
from creonowd.rpc.access import Grant
from creonowd.rpc.channel import Role
from creonowd.rpc.connection import Connection
from creonowd.rpc.requests import causes
from creonowd.rpc.server import PING, Host, Server
from creonowd.transports import sockets, stdio

FIRST_ANSWER_SECONDS = 0.005
FREED_BYTES_KEPT = 4 * 1024 * 1024

# Young objects are collected as usual; all objects only after some millions of new ones.
GARBAGE_THRESHOLDS = (700, 10, 1000)

# The parameters of glibc's mallopt(3).
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class Options:
    """The command line of `creonowd serve`."""

    user_data: Path
    output: int | None = None
    socket: Path | None = None
    tcp_port: int | None = None
    websocket_port: int | None = None
    flags: Mapping[str, Any] = field(default_factory=dict[str, Any])


def serve(options: Options) -> int:
    """Run a daemon until something ends it; return the exit status."""
    keep_freed_memory()
    gc.disable()  # nothing that a start loads is garbage, and collections took 40 ms of it
    settings = configuration.load(options.user_data, options.flags)
    with _usable_folder(options.user_data):
        endpoint.make_user_data(options.user_data)
        lock = endpoint.take_lock(options.user_data)
    try:
        with _usable_folder(options.user_data):
            redactor = configuration.user_redactor(settings, options.user_data)
            logs.configure(options.user_data, settings, sys.stderr, redactor)
        _run(options, settings)
        viewer_server.remove(options.user_data)
    finally:
        endpoint.remove(options.user_data)
        logs.close()
        os.close(lock)
    return 0


@contextlib.contextmanager
def _usable_folder(user_data: Path) -> Generator[None]:
    """Report a user-data folder that cannot be used."""
    try:
        yield
    except OSError as error:
        exists = isinstance(error, FileExistsError)
        reason = _NO_FOLDER if exists else _NOT_WRITABLE.format(error.strerror)
        raise DaemonError(ErrorCode.IO_ERROR, _UNUSABLE.format(user_data, reason)) from error


_NO_FOLDER = Wording("it is not a folder. Move it away", "它不是文件夹。请移走它")
_NOT_WRITABLE = Wording("{}. Make it writable", "{}。请使它可写")
_UNUSABLE = Wording(
    "The user-data folder {} cannot be used: {}, or name another with --user-data or "
    "CREONOW_USER_DATA_DIR.",
    "用户数据文件夹 {} 无法使用：{}，或用 --user-data 或 CREONOW_USER_DATA_DIR 指定别处。",
)


def _run(options: Options, settings: configuration.Settings) -> None:
    """Serve; an error at the start is raised as itself, not as a group."""
    try:
        anyio.run(_serve, options, settings)
    except BaseExceptionGroup as group:
        raise next(causes(group)) from group


async def _serve(options: Options, settings: configuration.Settings) -> None:
    async with anyio.create_task_group() as tasks:
        async with contextlib.AsyncExitStack() as opened:
            daemon = Daemon(options, settings, tasks, opened)
            server, shutdown = daemon.server, daemon.shutdown
            shutdown.catch_signals()
            await daemon.open_transports()
            await daemon.load_services()
            # What is loaded now stays; a collection of it would stop every client for some 20 ms.
            gc.freeze()
            gc.set_threshold(*GARBAGE_THRESHOLDS)
            gc.enable()
            tasks.start_soon(collect_garbage, server.metrics)
            tasks.start_soon(daemon.pages.resume)
            log.info("daemon_started", version=__version__, pid=os.getpid())
            await server.exiting.wait()
            shutdown.arm_watchdog()
            clean = await server.drain(settings.drain_ms / 1000)
            log.info("daemon_stopping", reason=server.reason, drained=clean)
        shutdown.stop_watching()
        tasks.cancel_scope.cancel()
        log.info("daemon_stopped", reason=server.reason)


class Daemon:
    """The host of the server in a process of its own: signals, transports, viewer, services."""

    def __init__(
        self,
        options: Options,
        settings: configuration.Settings,
        tasks: TaskGroup,
        opened: contextlib.AsyncExitStack,
    ) -> None:
        clock = make_clock(deterministic=settings.deterministic)
        self.server = Server((PING,), settings, clock, tasks, self)
        self.shutdown = Shutdown(self.server.exit)
        self.pages = ViewerServer(self.server, opened, options.user_data)
        self.pid = os.getpid()
        self.is_loading = True
        self._options = options
        self._opened = opened
        self._services: Host | None = None
        self.redactor = Redactor()
        self._when_loaded: list[Callable[[], None]] = []

    async def open_transports(self) -> None:
        """Open every transport that the command line names, and publish the endpoints."""
        server, options = self.server, self._options
        endpoints: list[endpoint.Endpoint] = []
        if sys.platform != "win32":
            path = options.socket or endpoint.own_socket(options.user_data)
            await self._opened.enter_async_context(_unix_socket(server, path))
            endpoints.append(endpoint.Endpoint(transport="unix", address=str(path)))
        token = server.grants.mint(Grant(Role.OWNER))
        if sys.platform == "win32" or options.tcp_port is not None:
            with _free_port("--tcp", options.tcp_port):
                opening = sockets.listen_tcp(server, options.tcp_port or 0)
                port = await self._opened.enter_async_context(opening)
            address = f"{sockets.LOOPBACK}:{port}"
            endpoints.append(endpoint.Endpoint(transport="tcp", address=address, token=token))
        if options.websocket_port is not None:
            with _free_port("--websocket", options.websocket_port):
                address = await self.pages.listen(options.websocket_port)
            endpoints.append(endpoint.Endpoint(transport="websocket", address=address, token=token))
        endpoint.write(options.user_data, tuple(endpoints))
        if options.output is not None:
            await stdio.serve(server, options.output)

    async def load_services(self) -> None:
        """Import and build the services and channels, and run the requests that waited for them."""
        await anyio.sleep(FIRST_ANSWER_SECONDS)
        build: Any = await anyio.to_thread.run_sync(_import_build)
        server = self.server
        built = build.build_services(
            self._options.user_data, server.settings, server.clock, server.tasks, self.pages
        )
        services = await self._opened.enter_async_context(built)
        server.add(build.channels(server.settings))
        self._services = build.ServicesHost(services)
        self.redactor = services.redactor
        self.is_loading = False
        waiting, self._when_loaded = self._when_loaded, []
        for callback in waiting:
            callback()

    def session(self, connection: Connection) -> Any:
        """Return the services for a connection."""
        return self._loaded_services().session(connection)

    @property
    def document(self) -> bytes:
        """The OpenRPC document of all channels."""
        return self._loaded_services().document

    def _loaded_services(self) -> Host:
        assert self._services is not None, "only ping is answered while channels load"
        return self._services

    def when_loaded(self, callback: Callable[[], None]) -> None:
        """Run `callback` once the services are loaded."""
        self._when_loaded.append(callback)

    def watch_parent(self, pid: int) -> None:
        """End the daemon when the process `pid` ends."""
        self.shutdown.watch_parent(pid)


def _import_build() -> Any:
    return import_module("creonowd.daemon.build")


@contextlib.contextmanager
def _free_port(flag: str, port: int | None) -> Generator[None]:
    """Report a port that cannot be opened."""
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        wording = _NO_PORT.format(port or 0, reason, flag)
        raise DaemonError(ErrorCode.IO_ERROR, wording) from error


_NO_PORT = Wording(
    "Port {} cannot be opened: {}. Choose another; {} 0 picks one.",
    "无法打开端口 {}：{}。请换一个；{} 0 会自动选择。",
)


@contextlib.asynccontextmanager
async def _unix_socket(server: Server, path: Path) -> AsyncGenerator[asyncio.Server]:
    listener = await sockets.listen_unix(server, path)
    try:
        yield listener
    finally:
        listener.close()
        sockets.remove_socket(path)


def keep_freed_memory() -> bool:
    """Make glibc keep a few megabytes of freed memory; False where that cannot be set.

    By default it returns the memory of every large text to the system: with messages of 300 KB a
    third of the processor's time went into page faults. It would also keep them once for each
    thread, where `malloc_trim` does not reach: 16 MB after 256 replies of 1 MB. So all threads
    share one heap, and this is called before there are any.
    """
    if sys.platform != "linux":
        return False
    tune: Any = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is None:
        return False
    return all(
        (
            tune(_MMAP_THRESHOLD, FREED_BYTES_KEPT),
            tune(_TRIM_THRESHOLD, FREED_BYTES_KEPT),
            tune(_ARENA_MAX, 1),
        )
    )


WATCHDOG_SECONDS = 5.0
PARENT_POLL_SECONDS = 0.5
EXIT_STATUS_STUCK = 70
# The last one says that the processor time is used up that the system allows; SIGKILL follows it.
ENDING_SIGNALS = ("SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP", "SIGQUIT", "SIGXCPU")

Exit = Callable[[str], None]


class Shutdown:
    """Call `exit_daemon(reason)` on the event loop when a signal arrives or the parent ends."""

    def __init__(self, exit_daemon: Exit) -> None:
        self._exit_daemon = exit_daemon
        self._loop = asyncio.get_running_loop()
        self._over = threading.Event()
        self._watched: set[int] = set()

    def catch_signals(self) -> None:
        """Drain on the signals that end a program, and ignore those that mean nothing to a daemon."""
        signals.ignore()
        for name in ENDING_SIGNALS:
            if (number := getattr(signal, name, None)) is not None:
                signal.signal(number, self._on_signal)

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
            self._loop.call_soon_threadsafe(self._exit_daemon, reason)
        except RuntimeError:
            return


if sys.platform == "win32":
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
