"""What every story here shares."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The daemon runs on asyncio; so do its tests."""
    return "asyncio"
