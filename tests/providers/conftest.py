"""A server for each test of a provider, and a script of what the provider does."""

from collections.abc import AsyncGenerator

import pytest

from testing.providers import SCRIPTS, ProviderScript, ProviderServer, serve_provider

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture
async def upstream(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[ProviderServer]:
    """A local HTTP server, reached directly whatever proxy this machine uses."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    async with serve_provider() as opened:
        yield opened


@pytest.fixture
def idle_ms() -> int:
    """Override it to try a provider that falls silent."""
    return 60_000


@pytest.fixture(params=sorted(SCRIPTS))
async def script(
    request: pytest.FixtureRequest, upstream: ProviderServer, idle_ms: int
) -> AsyncGenerator[ProviderScript]:
    """Every provider in turn."""
    made: ProviderScript = SCRIPTS[request.param](upstream, idle_ms)
    yield made
    await made.provider.close()
