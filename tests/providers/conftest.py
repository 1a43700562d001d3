"""A model server for each test of a provider, and every provider that asks it."""

from collections.abc import AsyncGenerator

import pytest

from testing.providers import (
    PROXIES,
    SCRIPTED_PROVIDERS,
    ModelServer,
    ScriptedProvider,
    open_model_server,
)


@pytest.fixture
async def model_server(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[ModelServer]:
    """A local HTTP server, reached directly whatever proxy this machine uses."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    async with open_model_server() as opened:
        yield opened


@pytest.fixture
def idle_ms() -> int:
    """Override it to try a provider that falls silent."""
    return 60_000


@pytest.fixture(params=sorted(SCRIPTED_PROVIDERS))
async def scripted(
    request: pytest.FixtureRequest, model_server: ModelServer, idle_ms: int
) -> AsyncGenerator[ScriptedProvider]:
    """Every provider in turn."""
    made: ScriptedProvider = SCRIPTED_PROVIDERS[request.param](model_server, idle_ms)
    yield made
    await made.provider.close()
