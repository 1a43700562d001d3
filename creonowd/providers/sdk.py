"""What the official SDKs have in common: how they are loaded, quieted, and how they fail.

They are optional extras and slow to import, so that is done for the first call, in a thread.
Knows no provider's format.
"""

import contextlib
import importlib
import importlib.util
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from anyio import to_thread

from creonowd.errors import DaemonError
from creonowd.providers import faults

CONNECT_S = 10.0
NO_KEY = "none"

_EVERYWHERE = ("all://", "http://", "https://")
_OF_HTTP = ("accept-encoding", "connection", "content-length")


@dataclass(frozen=True)
class Address:
    """Where a provider is, and how to talk to it. The key is never shown."""

    key: str = field(repr=False)
    url: str = ""
    idle_ms: int = 120_000
    prompt_cache: bool = True


class Line:
    """A client of one SDK, made for the first call and kept until it is closed."""

    def __init__(self, name: str, address: Address, make: Callable[[Any, Address], Any]) -> None:
        self._name = name
        self._address = address
        self._make = make
        self._opening = anyio.Lock()
        self._library: Any = None
        self._client: Any = None

    @contextlib.asynccontextmanager
    async def open(self) -> AsyncGenerator[Any]:
        """Give the client; what it raises within the block becomes what a client of ours may know."""
        async with self._opening:
            if self._client is None:
                self._library = await to_thread.run_sync(_load, self._name)
                with _failures(self._library, self._address):
                    self._client = self._make(self._library, self._address)
        with _failures(self._library, self._address):
            yield self._client

    async def close(self) -> None:
        """Close the connections to the provider."""
        if self._client is not None:
            await self._client.close()


def timeout(address: Address) -> Any:
    """Bound the provider's silence, not the length of its answer."""
    import httpx2

    idle = address.idle_ms / 1000
    return httpx2.Timeout(idle, connect=min(CONNECT_S, idle))


def is_installed(name: str) -> bool:
    """Tell whether an SDK is there, without loading it."""
    return all(importlib.util.find_spec(each) is not None for each in (name, "httpx2"))


def http_client(library: Any, address: Address, **own: str) -> Any:
    """Make the client below the SDK's; a manuscript goes where the settings say and nowhere else.

    With it go the key, the headers of its `own` that a provider needs, and nothing that the SDK
    finds in the environment. A proxy that is set there is used where it cannot read along.
    """
    from creonowd.providers.body import bounded

    plain = address.url.lower().startswith("http:")
    direct: dict[str, Any] = {"mounts": dict.fromkeys(_EVERYWHERE), "trust_env": False}
    return library.DefaultAsyncHttpxClient(
        timeout=timeout(address),
        follow_redirects=False,
        event_hooks={
            "request": [_with_nothing_else(address, own)],
            "response": [bounded(library.__name__)],
        },
        **(direct if plain else {}),
    )


def _with_nothing_else(
    address: Address, own: Mapping[str, str]
) -> Callable[[Any], Awaitable[None]]:
    said = {name.replace("_", "-"): value for name, value in own.items()} | {
        "accept": "application/json",
        "content-type": "application/json",
        "user-agent": "creonowd",
        "authorization": f"Bearer {address.key or NO_KEY}",
    }

    async def strip(request: Any) -> None:
        kept = (*_OF_HTTP, "authorization") if request.url.userinfo else _OF_HTTP
        held = {name: request.headers[name] for name in kept if name in request.headers}
        request.headers = type(request.headers)({"host": request.url.netloc} | said | held)

    return strip


def _load(name: str) -> Any:
    try:
        library = importlib.import_module(name)
        importlib.import_module("httpx2")
    except ImportError:
        raise faults.not_installed(name) from None
    for noisy in (name, "httpx2", "httpcore2"):
        # At debug level these log whole requests, prompt and all.
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return library


@contextlib.contextmanager
def _failures(library: Any, address: Address) -> Generator[None]:
    import httpx2

    name: str = library.__name__
    try:
        yield
    except (library.APIConnectionError, httpx2.HTTPError) as error:
        raise _broken(error, name, address) from None
    except library.APIError as error:
        raise _complaint(error, name).as_error(address.key) from None
    except httpx2.InvalidURL:
        raise faults.unreachable(name) from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise faults.nonsense(name) from None


def _broken(error: Exception, name: str, address: Address) -> DaemonError:
    import httpx2

    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
    if isinstance(cause, httpx2.ConnectTimeout | httpx2.ConnectError | httpx2.UnsupportedProtocol):
        return faults.unreachable(name)
    if isinstance(cause, httpx2.TimeoutException):
        return faults.silent(name, address.idle_ms)
    return faults.cut(name)


def _complaint(error: Any, name: str) -> faults.Complaint:
    response = getattr(error, "response", None)
    inner = _error_in(error.body)
    return faults.Complaint(
        name,
        status=getattr(error, "status_code", 200),
        kind=_text(inner.get("code")) or _text(inner.get("type")),
        said=_text(inner.get("message")),
        headers={} if response is None else dict(response.headers),
    )


def _error_in(body: Any) -> dict[str, Any]:
    """Find the error object, which one SDK unwraps and the other does not."""
    outer = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    inner = outer.get("error", outer)
    return cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
