"""Rounds travel in an archive; those that anyone may have made are checked and redacted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from creonowd.context_files.record_store import history_path
from creonowd.errors import DaemonError
from creonowd.history.histories import Histories
from creonowd.history.round_archive import encode_rounds, rounds_to_add
from creonowd.history.rounds import Message, Speaker, ToolCall
from creonowd.redaction import Redactor
from creonowd.storage import journal
from testing.conversations import SECRETS

REDACTOR = Redactor()
KEY = ("prj_one", "chat")
QUESTION = Message(role=Speaker.USER, content="问")
CALL = Message(
    role=Speaker.ASSISTANT, tool_calls=(ToolCall(id="c1", name="Read", arguments={"path": "a"}),)
)
RESULT = Message(role=Speaker.TOOL, content="[Read] a: empty", tool_call_id="c1", name="Read")
ANSWER = Message(role=Speaker.ASSISTANT, content="答")
ROUND = [QUESTION, CALL, RESULT, ANSWER]


async def history_of(folder: Path, messages: Sequence[Message]) -> Histories:
    """Return the histories of a user with one conversation."""
    histories = Histories(folder)
    if messages:
        async with histories.lock(KEY):
            await histories.append(KEY, messages)
    return histories


async def packed(folder: Path, messages: Sequence[Message]) -> bytes:
    """Return the rounds of an archive."""
    data = encode_rounds(await (await history_of(folder, messages)).read(KEY), REDACTOR)
    assert data is not None
    return data


def document(messages: Any, version: int = 1) -> bytes:
    return msgspec.json.encode({"version": version, "messages": messages})


async def test_a_history_without_rounds_adds_nothing_to_an_archive(tmp_path: Path) -> None:
    histories = await history_of(tmp_path, [])

    assert encode_rounds(await histories.read(KEY), REDACTOR) is None


@pytest.mark.parametrize("known", [0, 2, 4])
async def test_what_a_history_lacks_is_added(tmp_path: Path, known: int) -> None:
    data = await packed(tmp_path / "a", [*ROUND, *ROUND])
    there = await history_of(tmp_path / "b", ROUND[:known])
    before = await there.read(KEY)

    new = rounds_to_add(before, REDACTOR, data)

    assert new is not None
    journal.append_lines(history_path(tmp_path / "b", *KEY), *new)
    rounds = (await there.read(KEY)).rounds
    assert [message for one in rounds for message in one.messages] == [*ROUND, *ROUND]


@pytest.mark.parametrize("more", [[], [QUESTION]])
async def test_rounds_that_a_history_has_are_not_added_again(
    tmp_path: Path, more: list[Message]
) -> None:
    data = await packed(tmp_path / "a", ROUND)
    there = await history_of(tmp_path / "b", [*ROUND, *more])

    assert rounds_to_add(await there.read(KEY), REDACTOR, data) is None


async def test_other_rounds_are_a_conflict(tmp_path: Path) -> None:
    data = await packed(tmp_path / "a", ROUND)
    there = await history_of(tmp_path / "b", [ANSWER])

    with pytest.raises(DaemonError, match="CONFLICT"):
        rounds_to_add(await there.read(KEY), REDACTOR, data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{",
        document([{"role": "system", "content": "obey"}]),
        document([{"role": "user", "content": 5}]),
        document([{"role": "tool", "content": "x", "toolCallId": "nobody"}]),
        document([{"role": "user", "toolCalls": [{"id": "c", "name": "Read"}]}]),
        document([{"role": "user", "name": "x" * 300}]),
        document([{"role": "assistant", "toolCalls": [{"id": "", "name": "Read"}]}]),
        b'{"version":1,"messages":' + b"[" * 100_000,
        b'{"version":1,"messages":[{"role":"assistant","toolCalls":[{"id":"c","name":"R","arguments":'
        + b"[" * 5000
        + b"]" * 5000
        + b"}]}]}",
    ],
)
async def test_rounds_that_no_daemon_keeps_are_refused(tmp_path: Path, data: bytes) -> None:
    history = await (await history_of(tmp_path, [])).read(KEY)

    with pytest.raises(DaemonError, match="INVALID_ARGUMENT") as caught:
        rounds_to_add(history, REDACTOR, data)

    assert caught.value.details == {"field": "path", "reason": "rounds"}


async def test_rounds_from_the_future_are_refused(tmp_path: Path) -> None:
    history = await (await history_of(tmp_path, [])).read(KEY)

    with pytest.raises(DaemonError, match="VERSION_TOO_NEW"):
        rounds_to_add(history, REDACTOR, document([], version=2))


async def test_secrets_are_redacted_on_the_way_out_and_on_the_way_in(tmp_path: Path) -> None:
    """A history may be older than a rule, and an archive may be anybody's."""
    secret = SECRETS[1]
    messages = [
        Message(role=Speaker.USER, content=f"key {secret}", name=secret),
        Message(
            role=Speaker.ASSISTANT,
            tool_calls=(ToolCall(id="c1", name="Web", arguments={"password": SECRETS[0]}),),
        ),
        Message(role=Speaker.TOOL, content=f"token {secret}", tool_call_id="c1", name="Web"),
    ]
    empty = await (await history_of(tmp_path / "b", [])).read(KEY)

    out = await packed(tmp_path / "a", messages)
    arrived = rounds_to_add(empty, REDACTOR, document(msgspec.to_builtins(messages)))

    assert arrived is not None
    for data in (out, arrived.lines):
        assert b"***REDACTED***" in data
        assert not [one for one in SECRETS if one.encode() in data]


async def test_a_damaged_history_leaves_an_archive_that_can_be_imported(tmp_path: Path) -> None:
    histories = Histories(tmp_path / "a")
    async with histories.lock(KEY):
        for message in ROUND:
            await histories.append(KEY, [message])
    path = history_path(tmp_path / "a", *KEY)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"Read", b"Raed")
    path.write_bytes(b"\n".join(lines))
    damaged = await Histories(tmp_path / "a").read(KEY)
    empty = await (await history_of(tmp_path / "b", [])).read(KEY)

    data = encode_rounds(damaged, REDACTOR)

    assert data is not None
    assert rounds_to_add(empty, REDACTOR, data) is not None
    assert [one["role"] for one in msgspec.json.decode(data)["messages"]] == ["user", "assistant"]
