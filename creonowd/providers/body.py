"""The bytes of a provider's reply, as many as one may have: a hook for the client below an SDK.

Bounds also what an SDK gathers before it hands on a piece of text. Knows no format.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, cast

import httpx2

from creonowd.providers import faults

# The longest answers take some forty, with a line of JSON about each token.
LONGEST = 64 * 1024 * 1024


def bounded(provider: str) -> Callable[[Any], Awaitable[None]]:
    """Make the hook that gives up a reply without end."""

    async def bound(response: httpx2.Response) -> None:
        response.stream = _Bounded(provider, cast("httpx2.AsyncByteStream", response.stream))

    return bound


class _Bounded(httpx2.AsyncByteStream):
    def __init__(self, provider: str, stream: httpx2.AsyncByteStream) -> None:
        self._provider = provider
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > LONGEST:
                raise faults.endless(self._provider)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
