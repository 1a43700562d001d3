"""A stage for each test of a provider, and the provider that plays on it."""

from collections.abc import AsyncGenerator

import pytest

from testing.providers import ROLES, Role, Stage, on_stage

PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture
async def stage(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Stage]:
    """A local HTTP server, reached directly whatever proxy this machine uses."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    async with on_stage() as opened:
        yield opened


@pytest.fixture
def idle_ms() -> int:
    """Override it to try a provider that falls silent."""
    return 60_000


@pytest.fixture(params=sorted(ROLES))
async def role(request: pytest.FixtureRequest, stage: Stage, idle_ms: int) -> AsyncGenerator[Role]:
    """Every provider in turn."""
    made: Role = ROLES[request.param](stage, idle_ms)
    yield made
    await made.provider.close()
