"""What the official SDKs have in common: how they are loaded, quieted, and how they fail.

They are optional extras and slow to import, so that is done for the first call, in a thread.
Knows no provider's format.
"""

import contextlib
import importlib
import importlib.util
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, cast

import anyio
import httpx2
from anyio import to_thread

from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction.redactor import Redactor

SAID = 300
LONGEST_MESSAGE = 20_000

_AUTH = {401, 403}
_AUTH_KINDS = {"authentication_error", "permission_error", "invalid_api_key"}
_LIMIT_KINDS = {"rate_limit_error", "rate_limit_exceeded", "insufficient_quota"}


class Complaint:
    """What a provider answered instead of text."""

    def __init__(
        self,
        provider: str,
        *,
        status: int,
        kind: str | None = None,
        said: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.provider = provider
        self.status = status
        self.kind = kind or ""
        self.said = said
        self.headers = headers or {}

    def as_error(self, secret: str) -> DaemonError:
        """Tell refused keys, rate limits and everything else apart."""
        said = redacted(self.said, secret)
        details: dict[str, Any] = {"provider": self.provider, "status": self.status}
        if self.kind in _AUTH_KINDS or self.status in _AUTH:
            return DaemonError(
                ErrorCode.AI_AUTH_FAILED,
                f"{self.provider} refused the key; check it and its permissions.",
                **details,
            )
        if self.kind in _LIMIT_KINDS or self.status == 429:
            return _rate_limited(self, details)
        if 300 <= self.status < 400:
            return DaemonError(
                ErrorCode.UPSTREAM_ERROR,
                f"{self.provider} points to another address; check aiBaseUrl.",
                **details,
            )
        about = f": {said}" if said else ""
        return DaemonError(
            ErrorCode.UPSTREAM_ERROR,
            f"{self.provider} answered {redacted(self.kind, secret) or self.status}{about}",
            **details,
        )


def cut(provider: str) -> DaemonError:
    """Say that an answer ended before its end."""
    message = f"The answer of {provider} broke off; try again."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="cut")


def unreachable(provider: str) -> DaemonError:
    """Say that nobody answered."""
    message = f"{provider} cannot be reached; check the network and aiBaseUrl."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="unreachable")


def nonsense(provider: str) -> DaemonError:
    """Say that an answer is not in the provider's own format."""
    message = f"{provider} answered in a form that cannot be read; check aiBaseUrl."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="garbage")


def endless(provider: str) -> DaemonError:
    """Say that an answer is longer than any that was asked for."""
    message = f"The answer of {provider} does not end; check aiBaseUrl and the model."
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="endless")


def silent(provider: str, idle_ms: int) -> DaemonError:
    """Say that the provider said nothing for too long."""
    message = f"{provider} said nothing for {idle_ms} ms; try again, or raise aiIdleTimeoutMs."
    return DaemonError(ErrorCode.TIMEOUT, message, provider=provider, reason="upstream_silent")


def not_installed(provider: str) -> DaemonError:
    """Say which extra is missing."""
    message = f"The {provider} library is not installed: pip install 'creonowd[{provider}]'."
    return DaemonError(ErrorCode.AI_NOT_CONFIGURED, message, provider=provider)


def redacted(said: str, secret: str) -> str:
    """Take secrets out of what a provider said, above all the key it was given.

    Nothing is told of what is no sentence but a book: to go through one takes seconds.
    """
    if len(said) > LONGEST_MESSAGE:
        return ""
    clean = Redactor(secrets=[secret] if secret else []).redact(said.replace(secret or "\0", ""))
    line = " ".join(clean.text.split())
    return line if len(line) <= SAID else f"{line[:SAID]}…"


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """Read how long a provider asks to wait: milliseconds, seconds or a date."""
    lower = {name.lower(): value.strip() for name, value in headers.items()}
    for name, factor in (("retry-after-ms", 1), ("retry-after", 1000)):
        try:
            return max(0, round(float(lower[name]) * factor))
        except (KeyError, ValueError, OverflowError):
            continue
    try:
        wait = parsedate_to_datetime(lower["retry-after"]) - parsedate_to_datetime(lower["date"])
        return max(0, round(wait.total_seconds() * 1000))
    except (KeyError, ValueError, TypeError):
        return None


def _rate_limited(complaint: Complaint, details: dict[str, Any]) -> DaemonError:
    wait = retry_after_ms(complaint.headers)
    advice = "try again later" if wait is None else f"try again in {wait / 1000:g} s"
    known: dict[str, Any] = {} if wait is None else {"retryAfterMs": wait}
    return DaemonError(
        ErrorCode.AI_RATE_LIMITED,
        f"{complaint.provider} asks to slow down; {advice}.",
        **details,
        **known,
    )


# The longest answers take some forty, with a line of JSON about each token.
LONGEST_BODY = 64 * 1024 * 1024


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
            if size > LONGEST_BODY:
                raise endless(self._provider)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


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


class SdkClient:
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
        raise not_installed(name) from None
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
        raise unreachable(name) from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise nonsense(name) from None


def _broken(error: Exception, name: str, address: Address) -> DaemonError:
    import httpx2

    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
    if isinstance(cause, httpx2.ConnectTimeout | httpx2.ConnectError | httpx2.UnsupportedProtocol):
        return unreachable(name)
    if isinstance(cause, httpx2.TimeoutException):
        return silent(name, address.idle_ms)
    return cut(name)


def _complaint(error: Any, name: str) -> Complaint:
    response = getattr(error, "response", None)
    inner = _error_in(error.body)
    return Complaint(
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
