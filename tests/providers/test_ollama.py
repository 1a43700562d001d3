"""The requests in Ollama's own format, the window that is asked for, and what its lines say."""

import json
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers.ollama import STEP, OllamaChat
from creonowd.providers.provider import Answer, Call, Effort, Sampling, Stop
from creonowd.providers.sdk import Address
from testing.providers import ModelServer, Reply, ScriptedOllama, ollama_end, ollama_lines
from tests.providers.calls import CALL, PATIENCE, ignore

NDJSON = {"content-type": "application/x-ndjson"}


async def ask(model_server: ModelServer, *calls: Call, url: str = "") -> list[Answer]:
    provider = OllamaChat(Address(key="", url=url or model_server.url))
    try:
        with anyio.fail_after(PATIENCE):
            return [await provider.answer(call, ignore) for call in calls]
    finally:
        await provider.close()


def script(model_server: ModelServer, *lines: Any) -> None:
    ScriptedOllama(model_server, 60_000).sends("好")
    model_server.replies = [
        Reply([json.dumps(line).encode() + b"\n" for line in lines], 200, NDJSON)
    ]


async def test_the_prompt_is_sent_byte_for_byte_with_the_window_that_it_needs(
    model_server: ModelServer,
) -> None:
    ScriptedOllama(model_server, 60_000).sends("好")

    await ask(model_server, replace(CALL, window=8000), url=f"{model_server.url}/v1/")

    (request,) = model_server.received
    assert request.path == "/api/chat"
    assert request.body == {
        "model": "some-model",
        "messages": [
            {"role": "system", "content": CALL.system},
            {"role": "user", "content": CALL.user},
        ],
        "stream": True,
        "options": {"num_ctx": 8192, "num_predict": 1500},
    }


async def test_the_window_never_shrinks_so_that_no_model_is_loaded_anew(
    model_server: ModelServer,
) -> None:
    ScriptedOllama(model_server, 60_000).sends("好")

    await ask(model_server, replace(CALL, window=8000), CALL, replace(CALL, window=9000))

    windows = [request.body["options"]["num_ctx"] for request in model_server.received]
    assert windows == [8192, 8192, 9 * STEP]


async def test_no_window_is_asked_for_that_the_model_does_not_have(
    model_server: ModelServer,
) -> None:
    ScriptedOllama(model_server, 60_000).sends("好")
    model_server.shown = {"model_info": {"llama.context_length": 2048}}

    await ask(model_server, replace(CALL, window=8000))

    assert model_server.received[0].body["options"]["num_ctx"] == 2048


@pytest.mark.parametrize(
    ("effort", "think"), [(Effort.NONE, False), (Effort.LOW, "low"), (Effort.HIGH, "high")]
)
async def test_sampling_is_sent_in_its_own_words(
    model_server: ModelServer, effort: Effort, think: Any
) -> None:
    ScriptedOllama(model_server, 60_000).sends("好")
    sampling = Sampling(temperature=0.4, top_p=0.9, effort=effort)

    await ask(model_server, replace(CALL, sampling=sampling))

    body = model_server.received[0].body
    assert body["think"] == think
    assert (body["options"]["temperature"], body["options"]["top_p"]) == (0.4, 0.9)


async def test_thinking_is_no_part_of_the_text(model_server: ModelServer) -> None:
    script(
        model_server,
        *ollama_lines(["想一想", "再想"], "thinking"),
        *ollama_lines(["夜"]),
        ollama_end("stop"),
    )

    (answer,) = await ask(model_server, CALL)

    assert answer.text == "夜"


async def test_a_prompt_that_was_cached_has_no_count_and_is_no_error(
    model_server: ModelServer,
) -> None:
    script(model_server, *ollama_lines(["夜"]), ollama_end("length", prompt=None))

    (answer,) = await ask(model_server, CALL)

    assert (answer.usage, answer.stop) == (None, Stop.LENGTH)


async def test_a_line_ends_at_a_line_feed_and_nowhere_else(model_server: ModelServer) -> None:
    text = "一\u2028二\x85三\x0c四"
    pieces = [json.dumps(line, ensure_ascii=False).encode() for line in ollama_lines([text])]
    script(model_server)
    model_server.replies = [
        Reply([*pieces, b"\r\n\n", json.dumps(ollama_end("stop")).encode()], 200, NDJSON)
    ]

    (answer,) = await ask(model_server, CALL)

    assert answer.text == text


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([b"{not json\n"], "garbage"),
        ([b"[]\n"], "garbage"),
        ([b'{"message": 7}\n'], "garbage"),
        ([b"[" * 100_000 + b"\n"], "garbage"),
        ([b"\xff\xfe\n"], "garbage"),
        ([], "cut"),
        ([b"x" * 600_000] * 2, "endless"),
    ],
)
async def test_an_answer_that_makes_no_sense_is_an_upstream_error(
    model_server: ModelServer, pieces: list[bytes], reason: str
) -> None:
    script(model_server)
    model_server.replies = [Reply(pieces, 200, NDJSON)]

    with pytest.raises(DaemonError) as caught:
        await ask(model_server, CALL)

    assert caught.value.code is ErrorCode.UPSTREAM_ERROR
    assert caught.value.details["reason"] == reason


async def test_a_redirect_is_not_followed(model_server: ModelServer) -> None:
    script(model_server)
    model_server.replies = [Reply([], 307, {"location": f"{model_server.url}/elsewhere"})]

    with pytest.raises(DaemonError) as caught:
        await ask(model_server, CALL)

    assert caught.value.details["status"] == 307
    assert [request.path for request in model_server.received] == ["/api/chat"]
