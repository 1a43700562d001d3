"""What a huge text costs: memory in proportion to it, and no work that nobody waits for."""

import inspect
import tracemalloc
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest
from anyio import from_thread

from creonowd.errors import ErrorCode
from creonowd.settings import Settings
from testing.clients import PATIENCE, Client, RpcError
from testing.novels import CHAPTER, Novel, make_novel

LENGTH = 600_000
SENTENCE = "The rain fell all night, and nobody came to the old house by the river.\n"
BACKGROUND = "retrieval/project_index.py"
ENDS_AFTER = 3
"""How many more checks are made by work that is cancelled: one for each thread under way."""
MOST_TIMES = 14
"""How many times a text's own size is used for it at most, with what was sent and what is kept."""

Payload = Callable[[str], Mapping[str, Any]]


class Case:
    """A channel, and its payload for a large text, in a project and a conversation."""

    def __init__(self, channel: str, payload: Payload, unit: str = SENTENCE) -> None:
        self.channel, self.payload, self.text = channel, payload, unit * (LENGTH // len(unit))

    def __str__(self) -> str:
        return self.channel


def large_message(role: str) -> Payload:
    """Return the payload that appends a large message of somebody to a history."""
    return lambda text: {
        "messages": [{"role": "user", "content": "?"}, {"role": role, "content": text}]
    }


CASES = {
    "a tool's result": Case("context:tool:compress", lambda text: {"tool": "t", "result": text}),
    "a result of short lines": Case(
        "context:tool:compress", lambda text: {"tool": "t", "result": text}, "# a\n"
    ),
    "a result of lines of JSON": Case(
        "context:tool:compress", lambda text: {"tool": "t", "result": text}, '{"a":1}\n'
    ),
    "a result with hidden characters": Case(
        "context:tool:compress", lambda text: {"tool": "t", "result": text}, "\U0001f468\u200d"
    ),
    "a message of the user": Case("context:history:append", large_message("user")),
    "a message of lines": Case("context:history:append", large_message("assistant"), "a\n"),
    "a message of thoughts": Case(
        "context:history:append", large_message("assistant"), "Thought: a\n\n"
    ),
    "a message of tags": Case(
        "context:history:append", large_message("assistant"), "<think>a</think>b\n"
    ),
    "a count": Case("tokens:count", lambda text: {"text": text}),
    "a count of ligatures": Case("tokens:count", lambda text: {"text": text}, "\ufdfa"),
    "a count of marks": Case(
        "tokens:count", lambda text: {"text": text, "model": "qwen-max"}, "\u0301\u0316"
    ),
    "a bounded count": Case("tokens:count", lambda text: {"text": text, "model": "claude-opus-4"}),
}
every_case = pytest.mark.parametrize("name", CASES)


@pytest.fixture
def daemon_settings() -> Settings:
    return Settings(e2e=True, warm_up=False, debug=True)


@pytest.fixture
async def novel(client: Client, tmp_path: Path) -> Novel:
    return await make_novel(client, tmp_path / "novel", {CHAPTER: SENTENCE})


class Checks:
    """Counts how often the threads of a request look whether to stop, and can cancel it there."""

    def __init__(self, client: Client) -> None:
        self.made = 0
        self.last: int | None = None
        assert client.wire is not None
        self._feed = client.wire.connection.feed
        self._check = from_thread.check_cancelled

    def check(self) -> None:
        """Count a check, and make it."""
        if not _in_background():
            self.made += 1
            if self.made == self.last:
                from_thread.run_sync(self._cancel)
        self._check()

    def _cancel(self) -> None:
        request = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "large"}}
        self._feed(msgspec.json.encode(request) + b"\n")


def _in_background() -> bool:
    """Return whether this is work of the daemon itself, which no request can end."""
    frame = inspect.currentframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith(BACKGROUND):
            return True
        frame = frame.f_back
    return False


@pytest.fixture
def checks(client: Client, monkeypatch: pytest.MonkeyPatch) -> Checks:
    """The checks of what `client` asks for."""
    counted = Checks(client)
    monkeypatch.setattr(from_thread, "check_cancelled", counted.check)
    return counted


async def ask(client: Client, case: Case, novel: Novel, conversation: str) -> Any:
    """Send the large request of a case, and return its reply."""
    own = {"projectId": novel.project_id, "conversationId": conversation}
    request = {"jsonrpc": "2.0", "id": "large", "method": case.channel}
    await client.post({**request, "params": {**own, **case.payload(case.text)}})
    return await client.reply("large", 2 * PATIENCE)


@every_case
async def test_work_on_a_large_text_ends_when_nobody_waits_for_it(
    client: Client, novel: Novel, checks: Checks, name: str
) -> None:
    """Work is counted in checks: after a cancellation hardly any more are made."""
    case = CASES[name]
    await ask(client, case, novel, "whole")
    whole, checks.made = checks.made, 0
    checks.last = whole // 3

    reply = await ask(client, case, novel, "cancelled")

    assert RpcError(reply["error"]).code == ErrorCode.CANCELED
    assert checks.last <= checks.made <= checks.last + ENDS_AFTER
    assert whole >= 3 * ENDS_AFTER


@pytest.fixture
def traced() -> Generator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


@every_case
@pytest.mark.usefixtures("traced")
async def test_a_large_text_takes_memory_in_proportion(
    client: Client, novel: Novel, name: str
) -> None:
    case = CASES[name]
    size = len(case.text.encode())
    await ask(client, Case(case.channel, case.payload), novel, "first")
    before, _ = tracemalloc.get_traced_memory()
    tracemalloc.reset_peak()

    with anyio.fail_after(4 * PATIENCE):
        await ask(client, case, novel, "whole")

    assert tracemalloc.get_traced_memory()[1] - before < MOST_TIMES * size
