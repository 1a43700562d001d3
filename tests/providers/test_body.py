import anyio
import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.providers import sdk
from creonowd.providers.anthropic import AnthropicMessages
from creonowd.providers.openai import OpenAIChat
from creonowd.providers.provider import Call
from creonowd.providers.sdk import Address
from testing.providers import KEY, ProviderServer, ServerReply

CALL = Call(model="some-model", system="规则", user="续写", max_output_tokens=10)


@pytest.mark.parametrize("status", [200, 400])
@pytest.mark.parametrize("make", [OpenAIChat, AnthropicMessages])
async def test_a_reply_without_end_is_given_up_though_it_says_nothing(
    make: type[OpenAIChat | AnthropicMessages],
    status: int,
    upstream: ProviderServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDKs gather a line, and a complaint, however long it gets."""
    monkeypatch.setattr(sdk, "LONGEST_BODY", 1_000_000)
    upstream.replies = [ServerReply([b"x" * 100_000] * 20, status=status)]
    provider = make(Address(key=KEY, url=upstream.url))

    with anyio.fail_after(60), pytest.raises(DaemonError) as caught:
        await provider.answer(CALL, lambda _text: None)
    await provider.close()

    assert caught.value.code is ErrorCode.UPSTREAM_ERROR
    assert caught.value.details["reason"] == "endless"
