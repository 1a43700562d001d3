"""What every story here shares; `daemon` and `novel` come from the plugin that ships."""

import pytest

from testing.clients import refuse_undeclared_errors

refuse_undeclared_errors()


@pytest.fixture
def anyio_backend() -> str:
    """The daemon runs on asyncio; so do its tests."""
    return "asyncio"
