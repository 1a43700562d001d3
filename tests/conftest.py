"""What every test here shares: a daemon in memory, and no deadline, for a slow machine is no defect.

`scripts/fuzz` looks for longer than there is time for every day, with the profile `long`;
`scripts/windows`, where everything is slow, for a shorter time.
"""

import gc
import tempfile
from collections.abc import AsyncGenerator, Generator
from pathlib import Path

import anyio
import pytest
import structlog
from hypothesis import settings

from creonowd.daemon.build import build
from creonowd.engine.services import Session
from creonowd.retrieval import loaded_index
from creonowd.rpc.server import Server
from creonowd.settings import Settings
from testing.clients import Client, in_memory, refuse_undeclared_errors
from testing.logs import LogLines
from testing.novels import Novel, make_novel

settings.register_profile("creonowd", deadline=None, max_examples=50)
settings.register_profile("long", deadline=None, max_examples=1000)
settings.register_profile("short", deadline=None, max_examples=5)
settings.load_profile("creonowd")
refuse_undeclared_errors()


MEMORY = Path("/dev/shm")

# The first index of a process loads numpy. Here that is done before any test has a deadline.
assert loaded_index


def pytest_collection_finish() -> None:
    """Collect garbage rarely: it took a tenth of the time, over all that thousands of tests keep."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.fixture
def quick_path() -> Generator[Path]:
    """Give a folder in memory: tests that write thousands of files wait for no disk."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        yield Path(folder)


@pytest.fixture
def anyio_backend() -> str:
    """The daemon runs on asyncio; so do its tests."""
    return "asyncio"


@pytest.fixture
def daemon_settings() -> Settings:
    """Override it to try other settings."""
    return Settings(e2e=True, warm_up=False)


@pytest.fixture
def server_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user data of `server`; apart from `tmp_path`, which may be a project."""
    return tmp_path_factory.mktemp("user data 用户")


@pytest.fixture
async def server(server_data: Path, daemon_settings: Settings) -> AsyncGenerator[Server]:
    """A whole daemon, less its process and its sockets."""
    user_data = server_data
    async with anyio.create_task_group() as tasks, build(user_data, daemon_settings, tasks) as made:
        yield made
        tasks.cancel_scope.cancel()


@pytest.fixture
async def client(server: Server) -> AsyncGenerator[Client]:
    """An owner's connection to it."""
    async with in_memory(server) as connected:
        yield connected


@pytest.fixture
def session(server: Server, client: Client) -> Session:
    """What a handler gets for a request of `client`."""
    (connection,) = server.connections
    return server.host.session(connection)


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    """A fresh project with nothing in it."""
    return await make_novel(client, tmp_path / "红楼梦", {})


@pytest.fixture
def logged() -> Generator[LogLines]:
    """The log lines of this test, before they are rendered."""
    with structlog.testing.capture_logs() as lines:
        yield lines
