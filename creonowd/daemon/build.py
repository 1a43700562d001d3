"""The services of one daemon, made from its settings."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

from anyio.abc import TaskGroup

from creonowd.channels import ALL_CHANNELS, CONTRACT, E2E_CHANNELS
from creonowd.channels.session import Services, Session
from creonowd.channels.troubles import Trouble, Troubles
from creonowd.clock import Clock, SteppingClock, SystemClock
from creonowd.rpc.connection import Connection
from creonowd.rpc.discover import describe
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from creonowd.workspace.registry import Registry


@contextlib.asynccontextmanager
async def build(user_data: Path, settings: Settings, tasks: TaskGroup) -> AsyncGenerator[Server]:
    """Make a server whose connections can use every service; what needs an end ends with the block."""
    clock: Clock = SteppingClock() if settings.deterministic else SystemClock()
    channels = ALL_CHANNELS + (E2E_CHANNELS if settings.e2e else ())
    server = Server(channels, settings, clock, tasks)
    projects = Registry(user_data, clock)
    services = Services(
        settings=settings,
        user_data=user_data,
        clock=clock,
        server=server,
        troubles=_troubles(projects),
        projects=projects,
    )
    server.describe = lambda: describe(CONTRACT)
    server.open_session = lambda connection: _session(services, connection)
    yield server


def _session(services: Services, connection: Connection) -> Session:
    return Session.of(services, connection)


def _troubles(projects: Registry) -> Troubles:
    troubles = Troubles()
    troubles.watch("projects", lambda: _set_aside("projects.json", projects.set_aside))
    return troubles


def _set_aside(name: str, kept: str | None) -> Trouble | None:
    if kept is None:
        return None
    return Trouble(
        reason=f"{name} could not be read and was kept as {kept}",
        remedy="Look into the kept file; create your projects again if they are missing.",
    )
