"""Rounds of a conversation: a user's message and all that follows up to the next.

Knows how calls and results pair up; knows no disk, no budget and no tool.
"""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.observation import parsed
from creonowd.model import Model

LONGEST_ID = 256


class Speaker(StrEnum):
    """Who says a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class ToolCall(Model):
    """A call that the model asks for; `arguments` is an object, or the JSON of one."""

    id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    name: Annotated[str, Meta(max_length=LONGEST_ID)]
    arguments: Any = None


class Message(Model):
    """One message; `toolCallId` is the call that a tool's message answers."""

    role: Speaker
    content: str = ""
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that it asks for."""
        return self.tool_calls or ()


def spelled_calls(message: Message) -> list[str]:
    """Spell what a message's calls add to a prompt: each name and its arguments."""
    return [text for call in message.calls for text in (call.name, _arguments(call.arguments))]


def spelled(message: Message) -> str:
    """Spell all of a message, so that two can be compared byte by byte."""
    about = "" if message.tool_call_id is UNSET else f" {message.tool_call_id}"
    called = "".join(f"\n{text}" for text in spelled_calls(message))
    return f"{message.role}{about}\n{message.content}{called}\n"


def _arguments(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return msgspec.json.encode(arguments).decode()


LONG_ARGUMENT = 400
REMEMBERED = 32
NO_RESULT = "[no result was recorded]"


class Round:
    """One round, unchanging; a longer one is another.

    Those who count or quote it remember with it what they found, up to a number of things.
    """

    def __init__(self, index: int, messages: Sequence[Message]) -> None:
        self.index = index
        self.messages = tuple(messages)
        self._found: dict[Hashable, Any] = {}

    def recall(self, key: Hashable) -> Any:
        """Give what was remembered under a key; None if nothing is."""
        return self._found.get(key)

    def remember(self, key: Hashable, found: Any) -> None:
        """Keep something that this round and those before it always come to."""
        if len(self._found) >= REMEMBERED:
            self._found.clear()
        self._found[key] = found

    @cached_property
    def view(self) -> tuple[Message, ...]:
        """The round as a later turn sees it: every call right before its result."""
        return tuple(paired([_brief(message) for message in self.messages]))

    @cached_property
    def finished(self) -> bool:
        """Whether the model has given its answer."""
        last = self.messages[-1]
        return last.role is Speaker.ASSISTANT and not last.calls

    @property
    def request(self) -> str:
        """What the user asked for, if anything."""
        first = self.messages[0]
        return first.content if first.role is Speaker.USER else ""

    def extended(self, more: Sequence[Message]) -> "Round":
        """Give the round with more messages at its end."""
        return Round(self.index, (*self.messages, *more))


def grouped(before: Sequence[Round], messages: Iterable[Message]) -> list[Round]:
    """Add messages to rounds: one of the user begins the next."""
    rounds = list(before)
    for message in messages:
        if message.role is Speaker.USER or not rounds:
            rounds.append(Round(len(rounds), [message]))
        else:
            rounds[-1] = rounds[-1].extended([message])
    return rounds


def pending(messages: Iterable[Message]) -> list[ToolCall]:
    """List the calls of a round that have no result yet, oldest first."""
    waiting: list[ToolCall] = []
    for message in messages:
        waiting.extend(message.calls)
        if message.role is Speaker.TOOL and message.tool_call_id is not UNSET:
            answered = (i for i, call in enumerate(waiting) if call.id == message.tool_call_id)
            if (found := next(answered, None)) is not None:
                waiting.pop(found)
    return waiting


def checked(before: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """Refuse messages that would part calls and results; tell each result which call it answers."""
    known = list(before)
    told: list[Message] = []
    for number, message in enumerate(messages):
        if message.role is Speaker.USER:
            known = []
        checked_one = _checked(message, pending(known), f"messages[{number}]")
        known.append(checked_one)
        told.append(checked_one)
    return told


def paired(messages: Sequence[Message]) -> Iterator[Message]:
    """Put each result right after its call; a call without one gets a note in its place.

    A message of which nothing is left, such as a mere thought, is passed over.
    """
    results = [m for m in messages if m.role is Speaker.TOOL and m.tool_call_id is not UNSET]
    for message in messages:
        thought = message.role is Speaker.ASSISTANT and not message.content and not message.calls
        if not thought and (message.role is not Speaker.TOOL or message.tool_call_id is UNSET):
            yield message
        for call in message.calls:
            found = next((r for r in results if r.tool_call_id == call.id), None)
            if found is not None:
                results.remove(found)
            yield found or _missing(call)


def _checked(message: Message, waiting: Sequence[ToolCall], where: str) -> Message:
    if message.role is Speaker.SYSTEM:
        raise _refused(f"{where}.role", "History holds user, assistant and tool messages only.")
    if message.calls and message.role is not Speaker.ASSISTANT:
        raise _refused(f"{where}.toolCalls", "Only the assistant calls tools.")
    ids = [call.id for call in (*waiting, *message.calls)]
    if len(set(ids)) < len(ids):
        raise _refused(f"{where}.toolCalls", "Two calls wait under the same id; make ids unique.")
    return _answering(message, waiting, where) if message.role is Speaker.TOOL else message


def _answering(message: Message, waiting: Sequence[ToolCall], where: str) -> Message:
    named = message.tool_call_id
    if named is UNSET and not waiting:
        return message
    call = next((c for c in waiting if named is UNSET or c.id == named), None)
    if call is None:
        raise _refused(
            f"{where}.toolCallId", "No call of this round waits for that result; append it first."
        )
    return replace(message, tool_call_id=call.id, name=message.name or call.name)


def _refused(field: str, why: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, why, field=field)


def _missing(call: ToolCall) -> Message:
    return Message(role=Speaker.TOOL, content=NO_RESULT, tool_call_id=call.id, name=call.name)


def _brief(message: Message) -> Message:
    if not message.calls:
        return message
    calls = tuple(replace(call, arguments=_short(call.arguments)) for call in message.calls)
    return message if calls == message.calls else replace(message, tool_calls=calls)


def _short(arguments: Any) -> Any:
    """Cut long texts in arguments; what is JSON stays JSON."""
    if isinstance(arguments, str):
        if len(arguments) <= LONG_ARGUMENT:
            return arguments
        value = parsed(arguments) or {"input": arguments}
        return msgspec.json.encode(_short(value)).decode()
    if isinstance(arguments, dict):
        fields = cast("dict[str, Any]", arguments)
        return {name: _short_text(value) for name, value in fields.items()}
    return _short_text(arguments)


def _short_text(value: Any) -> Any:
    if isinstance(value, str):
        rest = len(value) - LONG_ARGUMENT
        return value if rest <= 0 else f"{value[:LONG_ARGUMENT]}… {rest} more characters"
    spelled = msgspec.json.encode(value)
    return value if len(spelled) <= 2 * LONG_ARGUMENT else f"… {len(spelled)} bytes of JSON"


_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>think|thinking|thoughts?|reasoning|scratchpad)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_STEP = re.compile(
    r"^(?:Thoughts?|思考)[ \t]*(?:\d+[ \t]*)?[:：].*?"
    r"(?=^(?:Action|Observation|Final Answer|Answer|Finish|行动|观察|最终答案)\b|\n[ \t]*\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_QUOTES = "`'\"“「"


def without_thoughts(content: str) -> str:
    """Leave out what is marked as thought: tags, and the `Thought:` steps of a ReAct trace."""
    content = _STEP.sub("", _without_tags(content))
    return content.strip("\n") if content.strip() else ""


def _without_tags(content: str) -> str:
    """Go over the tags once. Half a pair counts unless a quote shows that it is talked about."""
    tags = list(_TAG.finditer(content))
    last_end = {_name(tag): tag.start() for tag in tags if tag["end"]}
    kept: list[str] = []
    inside, start = "", 0
    for tag in tags:
        name = _name(tag)
        if inside and not (tag["end"] and name == inside):
            continue
        if inside:
            inside, start = "", tag.end()
        elif tag["end"] and not _quoted(content, tag):
            kept, start = [], tag.end()
        elif not tag["end"] and last_end.get(name, -1) > tag.start():
            inside = name
            kept.append(_spoken(content, start, tag.start()))
        elif not tag["end"] and not _quoted(content, tag):
            return "".join([*kept, _spoken(content, start, tag.start())])
    return "".join([*kept, _spoken(content, start, len(content))])


def _spoken(content: str, start: int, end: int) -> str:
    """Give what stands between two thoughts."""
    text = content[start:end]
    return text.lstrip() if start else text


def _name(tag: re.Match[str]) -> str:
    return tag["name"].lower()


def _quoted(content: str, tag: re.Match[str]) -> bool:
    return content[max(0, tag.start() - 1) : tag.start()] in _QUOTES and tag.start() > 0
