"""What the official SDKs have in common: how a client is made, what is sent, and how calls fail.

The SDKs and `httpx2` are optional extras and slow to import. So they are imported for the first
call, in a thread, and never at the top of a module.
"""

import contextlib
import importlib
import importlib.util
import logging
import re
import ssl
import zlib
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Mapping,
)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.lowlevel
from anyio import to_thread

from creonowd.errors import DaemonError, ErrorCode, Wording, extra_missing
from creonowd.providers.provider import (
    Answer,
    Call,
    OnText,
    answer_too_long,
    ask_without_unknown,
)
from creonowd.redaction.redactor import Redactor

if TYPE_CHECKING:
    import httpx2

# The longest answers take some forty megabytes, with a line of JSON about each token.
LONGEST_BODY = 64 * 1024 * 1024
LONGEST_REPLY = 8 * 1024 * 1024
LONGEST_EVENT = 1024 * 1024
MOST_LINES = 1_000_000
MOST_EVENT_LINES = 1000
PIECE_BYTES = 4096
LONGEST_MESSAGE = 20_000
MESSAGE_LENGTH = 300
CONNECT_S = 10.0
NO_KEY = "none"
_DEEPEST_CAUSE = 16

_WITHOUT_SDK = {"ollama"}
_AUTH_STATUSES = {401, 403}
_MODEL_KINDS = {"model_not_found", "not_found_error"}
_REFUSALS = {400, 422}
# Our parameters by the names that servers use when they refuse one.
_PARAMETERS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "reasoning_effort": "effort",
    "output_config": "effort",
    "effort": "effort",
    "think": "effort",
    "thinking": "effort",
}
_PARAMETER_NAMES = re.compile(rf"(?<![a-z_])(?:{'|'.join(_PARAMETERS)})(?![a-z_])")
_AUTH_KINDS = {"authentication_error", "permission_error", "invalid_api_key"}
_LIMIT_KINDS = {"rate_limit_error", "rate_limit_exceeded", "insufficient_quota"}
_ALL_SCHEMES = ("all://", "http://", "https://")
_HTTP_HEADERS = ("connection", "content-length")
# How the events of a stream end, by the type of its content.
_EVENT_ENDS = {"event-stream": (b"\n\n", b"\r\r", b"\r\n\r\n"), "ndjson": (b"\n",)}
_WINDOW_BITS = {"identity": None, "": None, "gzip": 31, "x-gzip": 31, "deflate": 47}


@dataclass(frozen=True)
class Address:
    """Where a provider is, and how to talk to it. Its repr has no key."""

    key: str = field(repr=False)
    url: str = ""
    idle_ms: int = 120_000
    prompt_cache: bool = True


class SdkProvider(ABC):
    """A provider that is called with its SDK; the client is made for the first call and then kept."""

    name: str
    judges = True

    def __init__(self, address: Address) -> None:
        self._address = address
        self._lock = anyio.Lock()
        self._library: Any = None
        self._client: Any = None

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Stream one answer, without the parameters that its model does not know."""

        async def ask(asked: Call) -> Answer:
            async with self._open() as client, await self._create(client, asked) as stream:
                return await self._read(stream, on_text)

        return await ask_without_unknown(call, self._unknown_parameters(call), ask)

    async def close(self) -> None:
        """Close the connections to the provider."""
        if self._client is not None:
            await self._client.close()

    @contextlib.asynccontextmanager
    async def _open(self) -> AsyncGenerator[Any]:
        """Return the client; what it raises within the block becomes a DaemonError."""
        async with self._lock:
            if self._client is None:
                self._library = await to_thread.run_sync(_load, self.name)
                with _daemon_errors(self._library, self._address):
                    self._client = self._make_client(self._library)
        with _daemon_errors(self._library, self._address):
            yield self._client

    @abstractmethod
    def _make_client(self, library: Any) -> Any:
        """Make the SDK's client for the address."""

    @abstractmethod
    def _unknown_parameters(self, call: Call) -> set[str]:
        """Return which of our parameters the model of a call does not take."""

    @abstractmethod
    def _create(self, client: Any, call: Call) -> Awaitable[Any]:
        """Send a call with the client; what it returns is the stream to read."""

    @abstractmethod
    async def _read(self, stream: Any, on_text: OnText) -> Answer:
        """Read a stream to its end, and pass on each piece of text as it comes."""


def is_installed(name: str) -> bool:
    """Return whether the library of a provider is installed, without loading it."""
    needed = {"httpx2"} if name in _WITHOUT_SDK else {name, "httpx2"}
    return all(importlib.util.find_spec(each) is not None for each in needed)


def _load(name: str) -> Any:
    _load_http(name)
    try:
        library = importlib.import_module(name)
    except ImportError:
        raise library_missing(name) from None
    logging.getLogger(name).setLevel(logging.WARNING)
    return library


def _load_http(name: str) -> Any:
    try:
        library = importlib.import_module("httpx2")
    except ImportError:
        raise library_missing(name) from None
    for logger in ("httpx2", "httpcore2"):
        # At debug level these log whole requests, prompt and all.
        logging.getLogger(logger).setLevel(logging.WARNING)
    return library


def timeout(address: Address) -> Any:
    """Limit the provider's silence, not the length of its answer."""
    import httpx2

    idle = address.idle_ms / 1000
    return httpx2.Timeout(idle, connect=min(CONNECT_S, idle))


def http_client(library: Any, address: Address, **headers: str) -> Any:
    """Make the HTTP client of an SDK: it sends a prompt to the address in the settings only.

    With it go the key, `headers`, and nothing that the SDK finds in the environment. A proxy that
    is set there is used only where it cannot read the prompt.
    """
    return library.DefaultAsyncHttpxClient(**_client_options(library.__name__, address, headers))


def bare_client(name: str, address: Address) -> "httpx2.AsyncClient":
    """Make an HTTP client for a server without an SDK, with the same restrictions."""
    httpx2 = _load_http(name)
    return httpx2.AsyncClient(**_client_options(name, address, {}))


def _client_options(name: str, address: Address, headers: Mapping[str, str]) -> dict[str, Any]:
    plain = address.url.lower().startswith("http:")
    direct: dict[str, Any] = {"mounts": dict.fromkeys(_ALL_SCHEMES), "trust_env": False}
    return {
        "timeout": timeout(address),
        "follow_redirects": False,
        "event_hooks": {
            "request": [_header_hook(address, headers)],
            "response": [_body_hook(name)],
        },
        **(direct if plain else {}),
    }


def _header_hook(address: Address, headers: Mapping[str, str]) -> Callable[[Any], Awaitable[None]]:
    """Make the hook that replaces all headers of a request by those that a provider needs."""
    ours = {name.replace("_", "-"): value for name, value in headers.items()} | {
        "accept": "application/json",
        "accept-encoding": "identity",
        "content-type": "application/json",
        "user-agent": "creonowd",
        "authorization": f"Bearer {address.key or NO_KEY}",
    }

    async def replace_headers(request: Any) -> None:
        kept = (*_HTTP_HEADERS, "authorization") if request.url.userinfo else _HTTP_HEADERS
        theirs = {name: request.headers[name] for name in kept if name in request.headers}
        request.headers = type(request.headers)({"host": request.url.netloc} | ours | theirs)

    return replace_headers


def _body_hook(provider: str) -> Callable[["httpx2.Response"], Awaitable[None]]:
    """Make the hook that fails a reply whose body, once decompressed, is longer than any answer."""
    import httpx2

    class BoundedStream(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream, limits: "BodyLimits") -> None:
            self._stream = stream
            self._limits = limits

        async def __aiter__(self) -> AsyncIterator[bytes]:
            async for chunk in self._stream:
                for piece in self._limits.pieces(chunk):
                    yield piece
                    # The SDKs take a line at a time; others must get their turn in between.
                    await anyio.lowlevel.checkpoint()

        async def aclose(self) -> None:
            await self._stream.aclose()

    async def bound_body(response: httpx2.Response) -> None:
        encoding = response.headers.pop("content-encoding", "identity").strip().lower()
        kind = response.headers.get("content-type", "")
        ends = next((marks for name, marks in _EVENT_ENDS.items() if name in kind), ())
        limits = BodyLimits(provider, encoding, event_ends=ends)
        stream = cast("httpx2.AsyncByteStream", response.stream)
        response.stream = BoundedStream(stream, limits)

    return bound_body


class BodyLimits:
    """Decompresses the body of a reply in small pieces and fails one that goes on too long.

    The daemon asks for no compression, but a server may compress all the same. An SDK joins the lines
    of an event one by one, which takes longer the more there are.
    """

    def __init__(self, provider: str, encoding: str, *, event_ends: tuple[bytes, ...] = ()) -> None:
        if encoding not in _WINDOW_BITS:
            raise answer_unreadable(provider)
        bits = _WINDOW_BITS[encoding]
        self._provider = provider
        self._decoder = None if bits is None else zlib.decompressobj(bits)
        self._event_ends = event_ends
        self._size = 0
        self._lines = 0
        self._event_bytes = 0
        self._event_lines = 0

    def pieces(self, chunk: bytes) -> Iterator[bytes]:
        """Yield what a chunk decompresses to, a few kilobytes at a time."""
        for piece in self._decompress(chunk):
            self._check(piece)
            yield piece

    def _decompress(self, chunk: bytes) -> Iterator[bytes]:
        if self._decoder is None:
            yield from (chunk[at : at + PIECE_BYTES] for at in range(0, len(chunk), PIECE_BYTES))
            return
        rest = chunk
        while rest and not self._decoder.eof:
            try:
                piece = self._decoder.decompress(rest, PIECE_BYTES)
            except zlib.error:
                raise answer_unreadable(self._provider) from None
            rest = self._decoder.unconsumed_tail
            if piece:
                yield piece

    def _check(self, piece: bytes) -> None:
        self._size += len(piece)
        self._lines += piece.count(b"\n")
        end = max((piece.rfind(mark) for mark in self._event_ends), default=-1)
        fresh = piece if end < 0 else piece[end:]
        self._event_bytes = len(fresh) + (self._event_bytes if end < 0 else 0)
        self._event_lines = fresh.count(b"\n") + (self._event_lines if end < 0 else 0)
        longest = LONGEST_BODY if self._event_ends else LONGEST_REPLY
        too_long = self._size > longest or self._lines > MOST_LINES
        if self._event_ends:
            too_long = too_long or self._event_bytes > LONGEST_EVENT
            too_long = too_long or self._event_lines > MOST_EVENT_LINES
        if too_long:
            raise answer_too_long(self._provider)


@contextlib.contextmanager
def _daemon_errors(library: Any, address: Address) -> Generator[None]:
    name: str = library.__name__
    with http_errors(name, address):
        try:
            yield
        except library.APIConnectionError as error:
            raise _connection_error(error, name, address) from None
        except library.APIError as error:
            raise _error_reply(error, name).as_error(address.key) from None


@contextlib.contextmanager
def http_errors(name: str, address: Address) -> Generator[None]:
    """Turn what an HTTP client and a reply in no known form raise into a DaemonError."""
    import httpx2

    try:
        yield
    except httpx2.HTTPError as error:
        raise _connection_error(error, name, address) from None
    except httpx2.InvalidURL:
        raise provider_unreachable(name) from None
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise answer_unreadable(name) from None


def _connection_error(error: Exception, name: str, address: Address) -> DaemonError:
    import httpx2

    if _is_tls_failure(error):
        return connection_not_secure(name)
    cause = error if isinstance(error, httpx2.HTTPError) else error.__cause__
    if isinstance(cause, httpx2.ConnectTimeout | httpx2.ConnectError | httpx2.UnsupportedProtocol):
        return provider_unreachable(name)
    if isinstance(cause, httpx2.TimeoutException):
        return provider_silent(name, address.idle_ms)
    return answer_cut_off(name)


def _is_tls_failure(error: BaseException | None) -> bool:
    for _ in range(_DEEPEST_CAUSE):
        if error is None or isinstance(error, ssl.SSLError):
            break
        error = error.__cause__ or error.__context__
    return isinstance(error, ssl.SSLError)


class ErrorReply:
    """An error that a provider sent instead of an answer."""

    def __init__(
        self,
        provider: str,
        *,
        status: int,
        kind: str | None = None,
        message: str = "",
        parameter: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._provider = provider
        self._parameter = parameter
        self._status = status
        self._kind = kind or ""
        self._message = message
        self._headers = headers or {}

    def as_error(self, secret: str) -> DaemonError:
        """Make it an error of ours: the key is refused, the rate is limited, or anything else."""
        details: dict[str, Any] = {"provider": self._provider, "status": self._status}
        if self._kind in _AUTH_KINDS or self._status in _AUTH_STATUSES:
            return DaemonError(
                ErrorCode.AI_AUTH_FAILED,
                _REFUSED.format(self._provider),
                **details,
            )
        if self._kind in _LIMIT_KINDS or self._status == 429:
            return self._rate_limit(details)
        if 300 <= self._status < 400:
            return DaemonError(
                ErrorCode.UPSTREAM_ERROR,
                _MOVED.format(self._provider),
                **details,
            )
        message = redact_upstream_message(self._message, secret)
        about = f": {message}" if message else ""
        if self._kind in _MODEL_KINDS or self._status == 404:
            wording = _NO_MODEL.format(self._provider, about or ".")
            return DaemonError(ErrorCode.AI_MODEL_UNKNOWN, wording, **details)
        if self._status in _REFUSALS and (refused := self._refused_parameter()):
            details["parameter"] = refused
        kind = redact_upstream_message(self._kind, secret) or self._status
        wording = _ANSWERED.format(self._provider, kind, about)
        return DaemonError(ErrorCode.UPSTREAM_ERROR, wording, **details)

    def _refused_parameter(self) -> str:
        """Return our name of the parameter that the provider refuses; empty if it names none."""
        named = self._parameter or self._message[:LONGEST_MESSAGE]
        found = _PARAMETER_NAMES.search(named.lower())
        return _PARAMETERS[found[0]] if found else ""

    def _rate_limit(self, details: dict[str, Any]) -> DaemonError:
        wait = retry_after_ms(self._headers)
        advice = _LATER if wait is None else _IN_SECONDS.format(f"{wait / 1000:g}")
        if wait is not None:
            details["retryAfterMs"] = wait
        wording = _SLOW_DOWN.format(self._provider, advice)
        return DaemonError(ErrorCode.AI_RATE_LIMITED, wording, **details)


_REFUSED = Wording(
    "{} refused the key; check it and its permissions.", "{} 拒绝了密钥；请检查密钥及其权限。"
)
_MOVED = Wording(
    "{} points to another address; check its address.", "{} 指向了别的地址；请检查其地址。"
)
_NO_MODEL = Wording(
    "{} does not know the model, or answers at another address: check both{}",
    "{} 没有该模型，或地址有误；请检查二者{}",
)
_ANSWERED = Wording("{} answered {}{}", "{} 返回 {}{}")
_LATER = Wording("try again later", "请稍后重试")
_IN_SECONDS = Wording("try again in {} s", "请在 {} 秒后重试")
_SLOW_DOWN = Wording("{} asks to slow down; {}.", "{} 要求降低频率；{}。")


def _error_reply(error: Any, name: str) -> ErrorReply:
    response = getattr(error, "response", None)
    # One SDK unwraps the error object, the other does not.
    outer = cast("dict[str, Any]", error.body) if isinstance(error.body, dict) else {}
    inner = outer.get("error", outer)
    fields = cast("dict[str, Any]", inner) if isinstance(inner, dict) else {}
    return ErrorReply(
        name,
        status=getattr(error, "status_code", 200),
        kind=_text(fields.get("code")) or _text(fields.get("type")),
        message=_text(fields.get("message")),
        parameter=_text(fields.get("param")),
        headers={} if response is None else dict(response.headers),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def redact_upstream_message(message: str, secret: str) -> str:
    """Take secrets out of a provider's message, above all the key that it was given.

    A message over `LONGEST_MESSAGE` is dropped: to redact it could take seconds.
    """
    if len(message) > LONGEST_MESSAGE:
        return ""
    redactor = Redactor(secrets=[secret] if secret else [])
    clean = redactor.redact(message.replace(secret or "\0", ""))
    line = " ".join(clean.text.split())
    return line if len(line) <= MESSAGE_LENGTH else f"{line[:MESSAGE_LENGTH]}…"


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """Read how long a provider asks to wait: milliseconds, seconds or a date."""
    from email.utils import parsedate_to_datetime

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


def answer_cut_off(provider: str) -> DaemonError:
    """Make the error of an answer that broke off."""
    message = Wording(
        f"The answer of {provider} broke off; try again.", f"{provider} 的回答中断；请重试。"
    )
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="cut")


def answer_unreadable(provider: str) -> DaemonError:
    """Make the error of an answer that is not in the provider's own format."""
    message = Wording(
        f"{provider} answered in a form that cannot be read; check its address.",
        f"{provider} 的回答无法解析；请检查其地址。",
    )
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="garbage")


def provider_unreachable(provider: str) -> DaemonError:
    """Make the error of an address where no server answers."""
    message = Wording(
        f"{provider} cannot be reached; check the network and its address.",
        f"无法连接 {provider}；请检查网络与其地址。",
    )
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="unreachable")


def connection_not_secure(provider: str) -> DaemonError:
    """Make the error of a server whose certificate does not hold, or that speaks no TLS."""
    message = Wording(
        f"The secure connection to {provider} failed; check whether its address is http or https,"
        " its certificate, and this computer's clock.",
        f"与 {provider} 的安全连接失败；请检查地址是 http 还是 https、其证书，以及本机时钟。",
    )
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="tls")


def provider_silent(provider: str, idle_ms: int) -> DaemonError:
    """Make the error of a provider that sends nothing for too long."""
    message = Wording(
        f"{provider} sent nothing for {idle_ms} ms; try again, or raise aiIdleTimeoutMs.",
        f"{provider} 在 {idle_ms} 毫秒内没有回应；请重试，或调大 aiIdleTimeoutMs。",
    )
    return DaemonError(ErrorCode.TIMEOUT, message, provider=provider, reason="upstream_silent")


def library_missing(provider: str) -> DaemonError:
    """Make the error of an SDK that is not installed; it names the extra."""
    return DaemonError(ErrorCode.AI_NOT_CONFIGURED, extra_missing(provider), provider=provider)
