"""A whole daemon inside the test's process, for tests that start one more than once."""

import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio

from creonowd.daemon.build import build
from creonowd.settings import Settings
from tests.clients import Client, in_memory


@contextlib.asynccontextmanager
async def daemon(user_data: Path, settings: Settings | None = None) -> AsyncGenerator[Client]:
    """Start a daemon, connect as an owner, and end it with the block."""
    async with (
        anyio.create_task_group() as tasks,
        build(user_data, settings or Settings(), tasks) as server,
        in_memory(server) as client,
    ):
        yield client
        tasks.cancel_scope.cancel()
