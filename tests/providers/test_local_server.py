"""What servers of an author's own machine say of their windows, each in its own format."""

import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.local_server import (
    USUAL_WINDOW,
    ServerKind,
    ServerReport,
    ask_server,
    is_local,
)
from creonowd.providers.sdk import Address
from testing.local_servers import LlamaCppServer, LmStudioServer, OllamaServer, VllmServer
from testing.providers import ModelServer, ReceivedRequest, Reply, json_reply, open_server
from tests.providers.calls import PATIENCE


class NoServer(ModelServer):
    """Something else at the address, which sends the same to every question."""

    def reply_to(self, received: ReceivedRequest) -> Reply:
        return self.replies[0]


async def report(
    server: ModelServer, model: str = "qwen3-8b", provider: str = "openai"
) -> ServerReport | None:
    async with open_server(server):
        return await ask(server, model, provider)


async def failure(server: ModelServer, model: str = "qwen3-8b") -> DaemonError:
    async with open_server(server):
        with pytest.raises(DaemonError) as caught:
            await ask(server, model)
    return caught.value


async def ask(server: ModelServer, model: str, provider: str = "openai") -> ServerReport | None:
    with anyio.fail_after(PATIENCE):
        return await ask_server(provider, Address(key="", url=f"{server.url}/v1"), model)


@pytest.mark.parametrize("provider", ["openai", "ollama"])
async def test_a_loaded_model_in_ollama_has_the_window_that_it_was_loaded_with(
    provider: str,
) -> None:
    server = OllamaServer(len)
    server.loaded = 8192

    found = await report(server, "qwen3:8b", provider)

    assert found == ServerReport(kind=ServerKind.OLLAMA, window=8192, largest=40_960, thinks=True)


@pytest.mark.parametrize("loaded", [None, 8192])
async def test_an_ollama_that_does_not_say_is_assumed_to_give_its_usual_window(
    loaded: int | None,
) -> None:
    server = OllamaServer(len)
    server.loaded, server.reports_window = loaded, False

    found = await report(server, "qwen3:8b")

    assert found is not None
    assert (found.window, found.assumed) == (USUAL_WINDOW, True)


async def test_a_window_in_the_modelfile_counts_before_the_model_is_loaded() -> None:
    server = OllamaServer(len, "mine:latest")
    server.num_ctx = 16_384

    found = await report(server, "mine")

    assert found is not None
    assert (found.window, found.assumed) == (16_384, False)


@pytest.mark.parametrize(
    ("server", "window", "assumed"),
    [
        (LmStudioServer(8192), 8192, False),
        (LmStudioServer(8192, version=1), 8192, False),
        (LmStudioServer(None), USUAL_WINDOW, True),
        (LmStudioServer(None, version=1), USUAL_WINDOW, True),
        (LmStudioServer(8192, old=True), USUAL_WINDOW, True),
    ],
)
async def test_lm_studio_reports_it_in_either_version(
    server: LmStudioServer, window: int, *, assumed: bool
) -> None:
    found = await report(server)

    assert found == ServerReport(
        kind=ServerKind.LM_STUDIO, window=window, assumed=assumed, largest=32_768
    )


@pytest.mark.parametrize(
    ("server", "kind", "window"),
    [(LlamaCppServer(4096), "llama.cpp", 4096), (VllmServer(), "vllm", 16_384)],
)
async def test_llama_cpp_and_vllm_report_it(server: ModelServer, kind: str, window: int) -> None:
    found = await report(server)

    assert found is not None
    assert (found.kind, found.window) == (kind, window)


@pytest.mark.parametrize(("server", "model"), [(OllamaServer(len), "x"), (LmStudioServer(), "x")])
async def test_a_model_that_is_not_there_is_named(server: ModelServer, model: str) -> None:
    error = await failure(server, model)

    assert error.code is ErrorCode.AI_MODEL_UNKNOWN
    assert "x" in error.message


@pytest.mark.parametrize(
    "reply",
    [
        Reply([b"<html>"], 200, {"content-type": "text/html"}),
        Reply([b"[" * 100_000], 200),
        Reply([b"\xff"], 200),
        json_reply([1]),
        json_reply({"models": 7, "data": [None, 7], "default_generation_settings": []}),
        json_reply({"default_generation_settings": {"n_ctx": -4}, "data": [{"id": "qwen3-8b"}]}),
        json_reply({"models": None}, 500),
        Reply([], 307, {"location": "http://127.0.0.1:1/"}),
    ],
)
async def test_a_server_that_makes_no_sense_has_no_window(reply: Reply) -> None:
    server = NoServer()
    server.replies = [reply]

    found = await report(server)

    assert found is None or found.window is None


async def test_a_server_that_is_still_loading_is_asked_later() -> None:
    assert await report(LlamaCppServer(loading=True)) is None


async def test_a_refused_key_is_reported() -> None:
    server = NoServer()
    server.replies = [json_reply({"error": "no"}, 401)]

    assert (await failure(server)).code is ErrorCode.AI_AUTH_FAILED


async def test_an_address_without_a_server_is_reported() -> None:
    with pytest.raises(DaemonError) as caught:
        await ask_server("ollama", Address(key="", url="http://127.0.0.1:1"), "m")

    assert caught.value.details["reason"] == "unreachable"


async def test_a_server_without_tls_behind_https_is_reported() -> None:
    async with open_server(ModelServer()) as server:
        address = Address(key="", url=server.url.replace("http:", "https:"))
        with anyio.fail_after(PATIENCE), pytest.raises(DaemonError) as caught:
            await ask_server("openai", address, "m")

    assert caught.value.details["reason"] == "tls"


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://127.0.0.1:11434", True),
        ("http://[::1]:8080/v1", True),
        ("http://localhost:1234/v1", True),
        ("http://192.168.1.7:1234", True),
        ("http://studio.local:1234", True),
        ("http://studio:1234", True),
        ("https://api.deepseek.com", False),
        ("https://8.8.8.8/v1", False),
        ("https://localhost.example.com/v1", False),
        ("http://[::1", False),
        ("", False),
    ],
)
def test_only_servers_at_home_are_local(url: str, *, local: bool) -> None:
    assert is_local(url) is local
