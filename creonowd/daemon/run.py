"""One daemon from start to end: settings, lock, services, transports, drain."""

import asyncio
import contextlib
import ctypes
import gc
import os
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
import structlog

from creonowd import __version__, logs
from creonowd import settings as configuration
from creonowd.clock import make_clock
from creonowd.daemon import endpoint, viewer_pages
from creonowd.daemon.life import Life
from creonowd.daemon.viewer_pages import Pages
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.access import Grant
from creonowd.rpc.boundary import leaves
from creonowd.rpc.channel import Role
from creonowd.rpc.server import PING, Server
from creonowd.transports import sockets, stdio

FIRST_ANSWER_SECONDS = 0.005

log = structlog.stdlib.get_logger(__name__)


@dataclass(frozen=True)
class Options:
    """What the command line decided."""

    user_data: Path
    output: int | None = None
    socket: Path | None = None
    tcp_port: int | None = None
    websocket_port: int | None = None
    flags: Mapping[str, Any] = field(default_factory=dict[str, Any])


def serve(options: Options) -> int:
    """Run a daemon until something ends it; the exit status."""
    settings = configuration.load(options.user_data, options.flags)
    with _usable(options.user_data):
        options.user_data.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = endpoint.take_lock(options.user_data)
    try:
        with _usable(options.user_data):
            redactor = configuration.user_redactor(settings, options.user_data)
            logs.configure(options.user_data, settings, sys.stderr, redactor)
        _run(options, settings)
        viewer_pages.remove(options.user_data)
    finally:
        endpoint.remove(options.user_data)
        logs.close()
        os.close(lock)
    return 0


@contextlib.contextmanager
def _usable(user_data: Path) -> Generator[None]:
    try:
        yield
    except FileExistsError as error:
        raise _unusable(user_data, "it is not a folder. Move it away") from error
    except OSError as error:
        raise _unusable(user_data, f"{error.strerror}. Make it writable") from error


def _unusable(user_data: Path, why: str) -> DaemonError:
    return DaemonError(
        ErrorCode.IO_ERROR,
        f"The user-data folder {user_data} cannot be used: {why}, or name another with "
        "--user-data or CREONOW_USER_DATA_DIR.",
    )


def _run(options: Options, settings: configuration.Settings) -> None:
    """Serve; what stops a start comes out as the one error that it is, not as a group."""
    try:
        anyio.run(_serve, options, settings)
    except BaseExceptionGroup as group:
        raise next(leaves(group)) from group


async def _serve(options: Options, settings: configuration.Settings) -> None:
    async with anyio.create_task_group() as tasks:
        server = Server((PING,), settings, make_clock(deterministic=settings.deterministic), tasks)
        server.expect_more()
        life = Life(server.exit)
        life.catch_signals()
        server.watch_parent = life.watch_parent
        async with contextlib.AsyncExitStack() as opened:
            pages = Pages(server, opened, options.user_data)
            await _open(server, options, opened, pages)
            await _furnish(server, options.user_data, opened)
            # What is loaded now stays; to go over it again would stop every client for some 20 ms.
            gc.freeze()
            tasks.start_soon(pages.resume)
            log.info("daemon_started", version=__version__, pid=os.getpid())
            await server.exiting.wait()
            life.arm_watchdog()
            clean = await server.drain(settings.drain_ms / 1000)
            log.info("daemon_stopping", reason=server.reason, drained=clean)
        life.over()
        tasks.cancel_scope.cancel()
        log.info("daemon_stopped", reason=server.reason)


async def _furnish(server: Server, user_data: Path, opened: contextlib.AsyncExitStack) -> None:
    """Load the rest in a thread: the first sign of life does not wait for it."""
    await anyio.sleep(FIRST_ANSWER_SECONDS)
    build = await anyio.to_thread.run_sync(_load)
    await opened.enter_async_context(build.furnish(server, user_data))


def _load() -> Any:
    keep_freed_memory()
    return import_module("creonowd.daemon.build")


async def _open(
    server: Server, options: Options, opened: contextlib.AsyncExitStack, pages: Pages
) -> None:
    endpoints: list[endpoint.Endpoint] = []
    if sys.platform != "win32":
        path = options.socket or endpoint.own_socket(options.user_data)
        await opened.enter_async_context(_unix(server, path))
        endpoints.append(endpoint.Endpoint(transport="unix", address=str(path)))
    token = server.grants.mint(Grant(Role.OWNER))
    if sys.platform == "win32" or options.tcp_port is not None:
        with _free("--tcp", options.tcp_port):
            listener = await sockets.listen_tcp(server, options.tcp_port or 0)
        opened.callback(listener.close)
        address = f"{sockets.LOOPBACK}:{sockets.port_of(listener)}"
        endpoints.append(endpoint.Endpoint(transport="tcp", address=address, token=token))
    server.open_page, server.keep_pages = pages.address, pages.keep
    if options.websocket_port is not None:
        with _free("--websocket", options.websocket_port):
            address = await pages.listen(options.websocket_port)
        endpoints.append(endpoint.Endpoint(transport="websocket", address=address, token=token))
    endpoint.write(options.user_data, tuple(endpoints))
    if options.output is not None:
        await stdio.serve(server, options.output)


@contextlib.contextmanager
def _free(flag: str, port: int | None) -> Generator[None]:
    try:
        yield
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else str(error)
        raise DaemonError(
            ErrorCode.IO_ERROR,
            f"Port {port or 0} cannot be opened: {reason}. Choose another; {flag} 0 picks one.",
        ) from error


@contextlib.asynccontextmanager
async def _unix(server: Server, path: Path) -> AsyncGenerator[asyncio.Server]:
    from creonowd.transports import sockets

    listener = await sockets.listen_unix(server, path)
    try:
        yield listener
    finally:
        listener.close()
        sockets.remove_socket(path)


KEPT = 4 * 1024 * 1024
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


def keep_freed_memory() -> bool:
    """Keep a few megabytes of freed memory at hand; whether the C library can be told so.

    Else glibc hands every large text back to the system and asks for it again: with a message of
    300 KB a third of the processor's time went into pages that had just been there.
    """
    if sys.platform != "linux":
        return False
    tune: Any = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is None:
        return False
    return bool(tune(_MMAP_THRESHOLD, KEPT)) and bool(tune(_TRIM_THRESHOLD, KEPT))
