"""What a server on the author's own machine or network reports of itself: its kind and its window.

Ollama, LM Studio, llama.cpp and vLLM are asked in their own formats. Some of them drop the
beginning of a prompt that is longer than the window, and report it nowhere else.
"""

import contextlib
import ipaddress
import re
from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

import anyio
import msgspec

from creonowd.errors import DaemonError
from creonowd.model import Model
from creonowd.providers import sdk
from creonowd.providers.sdk import Address, ErrorReply

if TYPE_CHECKING:
    import httpx2

# The window of a model in Ollama and LM Studio if nobody has chosen one.
USUAL_WINDOW = 4096
ANSWER_MS = 3000
LARGEST_WINDOW = 100_000_000

_NUM_CTX = re.compile(r"^\s*num_ctx\s+(\d{1,9})\s*$", re.MULTILINE)
_LOCAL_NAMES = (".local", ".lan", ".home", ".internal", ".localhost")


class ServerKind(StrEnum):
    """The program that serves the model."""

    OLLAMA = "ollama"
    """Ollama."""
    LM_STUDIO = "lmstudio"
    """LM Studio."""
    LLAMA_CPP = "llama.cpp"
    """The server of llama.cpp."""
    VLLM = "vllm"
    """vLLM."""


class ServerReport(Model):
    """What a server reports of one model.

    `window` is the tokens that prompt and answer may have there together; with `assumed` it is
    what the server usually gives, as the model is not loaded. `largest` is what the model could
    have, `thinks` whether it reasons; None where the server does not report it.
    """

    kind: ServerKind
    window: int | None = None
    assumed: bool = False
    largest: int | None = None
    thinks: bool | None = None


def is_local(url: str) -> bool:
    """Return whether an address is on this machine or in a private network.

    Only such servers are asked for their window.
    """
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return bool(host) and ("." not in host or host.endswith(_LOCAL_NAMES))
    return address.is_loopback or address.is_private or address.is_link_local


async def ask_server(provider: str, address: Address, model: str) -> ServerReport | None:
    """Ask a server for the window of a model; None if it is of no kind that reports one.

    AI_MODEL_UNKNOWN if it has no such model; UPSTREAM_ERROR or TIMEOUT if it does not answer.
    """
    address = _with_short_timeout(address)
    questions = (_ask_ollama,) if provider == "ollama" else _QUESTIONS
    with sdk.http_errors(provider, address):
        async with sdk.bare_client(provider, address) as client:
            server = LocalServer(provider, address, client)
            with anyio.move_on_after(2 * ANSWER_MS / 1000):
                for ask in questions:
                    if (report := await ask(server, model)) is not None:
                        return report
                return None
    raise sdk.provider_silent(provider, ANSWER_MS)


def _with_short_timeout(address: Address) -> Address:
    return Address(address.key, address.url, min(address.idle_ms, ANSWER_MS))


class LocalServer:
    """One server, asked over one client."""

    def __init__(self, provider: str, address: Address, client: "httpx2.AsyncClient") -> None:
        self._provider = provider
        self._address = address
        self._client = client
        self._base = base_of(address.url)

    async def get(self, path: str) -> dict[str, Any]:
        """Return the object at a path; an empty one if there is none."""
        reply = await self._client.get(self._base + path)
        if reply.status_code in {401, 403}:
            raise ErrorReply(self._provider, status=reply.status_code).as_error(self._address.key)
        return _object(reply.content) if reply.status_code == 200 else {}

    async def show(self, model: str) -> dict[str, Any]:
        """Return what Ollama knows of a model; AI_MODEL_UNKNOWN if it has none of that name."""
        reply = await self._client.post(f"{self._base}/api/show", json={"model": model})
        if reply.status_code == 404:
            message = _object(reply.content).get("error")
            raise ErrorReply(
                self._provider, status=404, message=message if isinstance(message, str) else ""
            ).as_error(self._address.key)
        return _object(reply.content) if reply.status_code == 200 else {}


def base_of(url: str) -> str:
    """Return the address of the server itself, without the `/v1` of its OpenAI interface."""
    return url.rstrip("/").removesuffix("/v1").rstrip("/")


async def _ask_ollama(server: LocalServer, model: str) -> ServerReport | None:
    running = (await server.get("/api/ps")).get("models")
    if not isinstance(running, list):
        return None
    report = read_model(await server.show(model))
    for entry in _objects(cast("list[Any]", running)):
        names = {entry.get("name"), entry.get("model")}
        if names & {model, f"{model}:latest"} and (window := _tokens(entry.get("context_length"))):
            return msgspec.structs.replace(report, window=window, assumed=False)
    return report


def read_model(shown: dict[str, Any]) -> ServerReport:
    """Read Ollama's description of a model that is not loaded."""
    facts = shown.get("model_info")
    lengths = (
        _tokens(value)
        for name, value in (
            cast("dict[str, Any]", facts) if isinstance(facts, dict) else {}
        ).items()
        if name.endswith(".context_length")
    )
    largest = next(filter(None, lengths), None)
    parameters = shown.get("parameters")
    chosen = _NUM_CTX.search(parameters) if isinstance(parameters, str) else None
    window = int(chosen[1]) if chosen else USUAL_WINDOW
    abilities = shown.get("capabilities")
    return ServerReport(
        kind=ServerKind.OLLAMA,
        window=min(window, largest or window),
        assumed=chosen is None,
        largest=largest,
        thinks="thinking" in abilities if isinstance(abilities, list) else None,
    )


async def _ask_lm_studio(server: LocalServer, model: str) -> ServerReport | None:
    listed = _objects((await server.get("/api/v0/models")).get("data"))
    for entry in listed:
        if entry.get("id") == model and "max_context_length" in entry:
            loaded = entry.get("state") == "loaded"
            window = _tokens(entry.get("loaded_context_length")) if loaded else None
            return _lm_studio(window, _tokens(entry.get("max_context_length")))
    for entry in _objects((await server.get("/api/v1/models")).get("models")):
        instances = _objects(entry.get("loaded_instances"))
        if model in {entry.get("key"), *(one.get("id") for one in instances)}:
            configs = (one.get("config") for one in instances)
            windows = (
                _tokens(cast("dict[str, Any]", config).get("context_length"))
                for config in configs
                if isinstance(config, dict)
            )
            window = next(filter(None, windows), None)
            return _lm_studio(window, _tokens(entry.get("max_context_length")))
    if any("max_context_length" in entry for entry in listed):
        raise _unknown_model(ServerKind.LM_STUDIO, model)
    return None


def _lm_studio(window: int | None, largest: int | None) -> ServerReport:
    usual = min(USUAL_WINDOW, largest or USUAL_WINDOW)
    return ServerReport(
        kind=ServerKind.LM_STUDIO,
        window=window or usual,
        assumed=window is None,
        largest=largest,
    )


async def _ask_llama_cpp(server: LocalServer, model: str) -> ServerReport | None:  # noqa: ARG001 - it serves one model
    settings = (await server.get("/props")).get("default_generation_settings")
    if not isinstance(settings, dict):
        return None
    window = _tokens(cast("dict[str, Any]", settings).get("n_ctx"))
    return ServerReport(kind=ServerKind.LLAMA_CPP, window=window)


async def _ask_vllm(server: LocalServer, model: str) -> ServerReport | None:
    for entry in _objects((await server.get("/v1/models")).get("data")):
        if entry.get("id") == model and (window := _tokens(entry.get("max_model_len"))):
            return ServerReport(kind=ServerKind.VLLM, window=window, largest=window)
    return None


_Question = Callable[[LocalServer, str], Awaitable[ServerReport | None]]
_QUESTIONS: tuple[_Question, ...] = (_ask_ollama, _ask_lm_studio, _ask_llama_cpp, _ask_vllm)


def _unknown_model(kind: ServerKind, model: str) -> DaemonError:
    return ErrorReply(kind, status=404, message=model).as_error("")


def _object(data: bytes) -> dict[str, Any]:
    """Decode a reply; LM Studio answers 200 and an error at a path that it does not have."""
    with contextlib.suppress(msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        value = msgspec.json.decode(data)
        if isinstance(value, dict):
            return cast("dict[str, Any]", value)
    return {}


def _objects(value: Any) -> list[dict[str, Any]]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", one) for one in listed if isinstance(one, dict)]


def _tokens(value: Any) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value <= LARGEST_WINDOW else None
