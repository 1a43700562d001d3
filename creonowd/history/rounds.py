"""Messages of a conversation and their rounds: a user's message and all that follows up to the next."""

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from enum import StrEnum
from functools import cached_property
from io import StringIO
from typing import Annotated, Any, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.tool_result import parse_json
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.text import lines_of
from creonowd.threads import until_stopped
from creonowd.tokens.boundaries import grapheme_ceiling, grapheme_floor

LONGEST_ID = 256
LONG_ARGUMENT = 400
REMEMBERED = 32
PREVIEW_HEAD = 1_000
PREVIEW_TAIL = 400
RESULT_HEAD = 2_600
RESULT_TAIL = 1_000
# A message that an older daemon kept without a context file is shown whole up to here.
LONGEST_WITHOUT_FILE = 20_000
NO_RESULT = "[no result was recorded]"

_TAG = re.compile(
    r"<(?P<end>/?)(?P<name>think|thinking|thoughts?|reasoning|scratchpad)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_THOUGHT_WORD = re.compile("Thought|思考")
_THOUGHT_LINE = re.compile(r"(?:Thoughts?|思考)[ \t]*(?:\d+[ \t]*)?[:：]")
_LABEL = re.compile(
    r"(?:Action(?: Input)?|Observation|Final Answer|Answer|Finish"
    r"|行动|观察|最终答案|答案|回答)[ \t]*\d*[ \t]*[:：\[]"
)
_ANSWER_IN_LINE = re.compile(r"(?:\b(?:Final )?Answer|最终答案|答案|回答)[ \t]*[:：]")
_LEFT_OUT = re.compile(r"\n\[… (\d+) characters left out[^\[\]\n]* …\]\n")
_QUOTES = "`'\"“「"


class Speaker(StrEnum):
    """The role of a message's sender."""

    SYSTEM = "system"
    """The system prompt."""
    USER = "user"
    """The person."""
    ASSISTANT = "assistant"
    """The model."""
    TOOL = "tool"
    """A tool that the model called."""


class ToolCall(Model):
    """A call that the model makes."""

    id: Annotated[str, Meta(min_length=1, max_length=LONGEST_ID)]
    """The call's id; the tool's message repeats it."""
    name: Annotated[str, Meta(max_length=LONGEST_ID)]
    """The tool's name."""
    arguments: Any = None
    """An object, or the JSON of one in a string."""


class Message(Model):
    """One message."""

    role: Speaker
    """Who sent it."""
    content: str = ""
    """Its text."""
    tool_calls: tuple[ToolCall, ...] | UnsetType = UNSET
    """The calls that it makes; absent if it makes none."""
    tool_call_id: str | UnsetType = UNSET
    """The call that a tool's message answers."""
    name: str | UnsetType = UNSET
    """The tool's name, in a tool's message."""
    ref: str | UnsetType = UNSET
    """The id of the context file with all of a text over the inline limits; later turns show its
    preview."""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that it makes."""
        return self.tool_calls or ()


def call_texts(message: Message) -> list[str]:
    """Return what a message's calls add to a prompt: each name and its arguments."""
    return [text for call in message.calls for text in (call.name, _arguments(call.arguments))]


def message_text(message: Message) -> str:
    """Return all of a message as one text, so that two can be compared byte by byte."""
    call_id = "" if message.tool_call_id is UNSET else f" {message.tool_call_id}"
    calls = "".join(f"\n{text}" for text in call_texts(message))
    return f"{message.role}{call_id}\n{message.content}{calls}\n"


def _arguments(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return msgspec.json.encode(arguments).decode()


class Round:
    """One round, which never changes: with more messages it is another `Round`.

    Costs and cuts are kept in the round that they belong to, and are freed with it.
    """

    def __init__(self, index: int, messages: Sequence[Message]) -> None:
        self.index = index
        self.messages = tuple(messages)
        self._values: Memo[Hashable, Any] = Memo(REMEMBERED)

    def recall(self, key: Hashable) -> Any:
        """Return the value that was remembered under a key, else None."""
        return self._values.peek(key)

    def remember(self, key: Hashable, value: Any) -> None:
        """Keep a value that depends only on this round and the rounds before it."""
        self._values.put(key, value)

    @cached_property
    def view(self) -> tuple[Message, ...]:
        """The round as a later turn sees it: every call right before its result."""
        short = (_as_preview(with_short_arguments(message)) for message in self.messages)
        return tuple(pair(list(short)))

    @cached_property
    def is_finished(self) -> bool:
        """Whether the model has given its answer."""
        last = self.messages[-1]
        return last.role is Speaker.ASSISTANT and not last.calls

    @property
    def request(self) -> str:
        """What the user asked for, if anything."""
        first = self.messages[0]
        return first.content if first.role is Speaker.USER else ""

    def extend(self, more: Sequence[Message]) -> "Round":
        """Return the round with more messages at its end."""
        return Round(self.index, (*self.messages, *more))


def group_rounds(before: Sequence[Round], messages: Iterable[Message]) -> list[Round]:
    """Add messages to rounds; each message of the user begins the next."""
    rounds = list(before)
    for message in messages:
        if message.role is Speaker.USER or not rounds:
            rounds.append(Round(len(rounds), [message]))
        else:
            rounds[-1] = rounds[-1].extend([message])
    return rounds


def _pending_calls(messages: Iterable[Message]) -> list[ToolCall]:
    """List the calls of a round that have no result yet, oldest first."""
    waiting: list[ToolCall] = []
    for message in messages:
        waiting.extend(message.calls)
        if message.role is Speaker.TOOL and message.tool_call_id is not UNSET:
            answered = (i for i, call in enumerate(waiting) if call.id == message.tool_call_id)
            if (found := next(answered, None)) is not None:
                waiting.pop(found)
    return waiting


def check_messages(before: Sequence[Message], messages: Sequence[Message]) -> list[Message]:
    """Set the call that each result answers; INVALID_ARGUMENT if it names none that waits for one.

    System messages, calls of anyone but the assistant, and ids that are used twice are refused too.
    """
    last_round = list(before)
    valid: list[Message] = []
    for number, message in enumerate(messages):
        if message.role is Speaker.USER:
            last_round = []
        checked = _check(message, _pending_calls(last_round), f"messages[{number}]")
        last_round.append(checked)
        valid.append(checked)
    return valid


def pair(messages: Sequence[Message]) -> Iterator[Message]:
    """Put each result right after its call; a call without one gets a note in its place.

    An empty message, such as one of which only a thought was left, is skipped.
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
            yield found or _no_result(call)


def _check(message: Message, waiting: Sequence[ToolCall], where: str) -> Message:
    if message.role is Speaker.SYSTEM:
        raise _invalid(f"{where}.role", "History holds user, assistant and tool messages only.")
    if message.calls and message.role is not Speaker.ASSISTANT:
        raise _invalid(f"{where}.toolCalls", "Only the assistant calls tools.")
    ids = [call.id for call in (*waiting, *message.calls)]
    if len(set(ids)) < len(ids):
        raise _invalid(f"{where}.toolCalls", "Two calls wait under the same id; make ids unique.")
    return _name_call(message, waiting, where) if message.role is Speaker.TOOL else message


def _name_call(message: Message, waiting: Sequence[ToolCall], where: str) -> Message:
    call_id = message.tool_call_id
    if call_id is UNSET and not waiting:
        return message
    call = next((c for c in waiting if call_id is UNSET or c.id == call_id), None)
    if call is None:
        raise _invalid(
            f"{where}.toolCallId", "No call of this round waits for that result; append it first."
        )
    return replace(message, tool_call_id=call.id, name=message.name or call.name)


def _invalid(field: str, message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field=field)


def _no_result(call: ToolCall) -> Message:
    return Message(role=Speaker.TOOL, content=NO_RESULT, tool_call_id=call.id, name=call.name)


def with_short_arguments(message: Message) -> Message:
    """Cut long texts in the arguments of a message's calls."""
    if not message.calls:
        return message
    calls = tuple(
        replace(call, arguments=_shorten_arguments(call.arguments)) for call in message.calls
    )
    return message if calls == message.calls else replace(message, tool_calls=calls)


def preview_of(content: str, ref: str, head: int = PREVIEW_HEAD, tail: int = PREVIEW_TAIL) -> str:
    """Return the head and the tail of a long text, and between them where the whole of it is."""
    end = grapheme_floor(content, head)
    start = max(end, grapheme_ceiling(content, max(0, len(content) - tail)))
    where = f"; the whole is context file {ref}: context.read or context.grep" if ref else ""
    missing = start - end
    if earlier := _LEFT_OUT.search(content, end, start):
        missing += int(earlier[1]) - len(earlier[0])
    note = f"[… {missing} characters left out{where} …]"
    short = f"{content[:end]}\n{note}\n{content[start:]}"
    return short if len(short) < len(content) else content


def _as_preview(message: Message) -> Message:
    """Show a text over the inline limits as its preview; a result ends with its own ref."""
    content = message.content
    if message.ref is UNSET and len(content) <= LONGEST_WITHOUT_FILE:
        return message
    if message.role is Speaker.TOOL:
        return replace(message, content=preview_of(content, "", RESULT_HEAD, RESULT_TAIL))
    return replace(message, content=preview_of(content, message.ref or ""))


def _shorten_arguments(arguments: Any) -> Any:
    """Cut long texts in arguments; what is JSON stays JSON."""
    if isinstance(arguments, str):
        if len(arguments) <= LONG_ARGUMENT:
            return arguments
        value = parse_json(arguments) or {"input": arguments}
        return msgspec.json.encode(_shorten_arguments(value)).decode()
    if isinstance(arguments, dict):
        fields = cast("dict[str, Any]", arguments)
        return {name: _shorten_value(value) for name, value in fields.items()}
    return _shorten_value(arguments)


def _shorten_value(value: Any) -> Any:
    if isinstance(value, str):
        rest = len(value) - LONG_ARGUMENT
        return value if rest <= 0 else f"{value[:LONG_ARGUMENT]}… {rest} more characters"
    size = len(msgspec.json.encode(value))
    return value if size <= 2 * LONG_ARGUMENT else f"… {size} bytes of JSON"


def without_thoughts(content: str, *, with_calls: bool = False) -> str:
    """Remove what is marked as thought: tags, and the `Thought:` steps of a ReAct trace.

    An answer is never lost: a reply without calls that is nothing but `Thought:` lines stays, and
    so does one behind a tag that is never closed.
    """
    untagged = _without_tags(content)
    if (
        not untagged.strip()
        and not with_calls
        and not any(tag["end"] for tag in until_stopped(_TAG.finditer(content)))
    ):
        untagged = _TAG.sub("", content)
    rest = _without_steps(untagged)
    if not rest.strip() and not with_calls:
        rest = untagged
    return rest.strip("\n") if rest.strip() else ""


def _without_steps(content: str) -> str:
    """Remove thoughts up to the next label of a trace, such as `Action:`.

    Without such a label it is unknown where a thought ends and the answer begins: the first line
    goes if the reply is a trace, and the others stay.
    """
    if not _THOUGHT_WORD.search(content):
        return content
    first = next((line for line in lines_of(content) if line.strip()), "")
    is_trace = bool(_THOUGHT_LINE.match(first) or _LABEL.match(first))
    kept, done = StringIO(), 0
    for start, end, has_label in _thoughts(content):
        kept.write(content[done:start])
        for line in lines_of(content[start:end]):
            if has_label:
                kept.write(_answer_in_line(line))
            else:
                kept.write(_rest_of_line(line) if is_trace else line)
        done = end
    kept.write(content[done:])
    return kept.getvalue()


def _thoughts(content: str) -> Iterator[tuple[int, int, bool]]:
    """Yield of each thought where its paragraph begins and ends, and whether a label comes next.

    A paragraph ends before a blank line or one that begins with a label.
    """
    place, start, end = 0, -1, -1
    for line in lines_of(content):
        is_blank, is_label = not line.strip(), _LABEL.match(line) is not None
        if start >= 0 and end < 0 and (is_blank or is_label):
            end = place
        if end >= 0 and not is_blank:
            yield start, end, is_label
            start = end = -1
        if start < 0 and _THOUGHT_LINE.match(line):
            start = place
        place += len(line)
    if start >= 0:
        yield start, place if end < 0 else end, False


def _rest_of_line(line: str) -> str:
    """Return a line, or of a thought only the answer that stands in it."""
    return _answer_in_line(line) if _THOUGHT_LINE.match(line) else line


def _answer_in_line(line: str) -> str:
    """Return the answer that stands in a line of thought behind its own label."""
    found = _ANSWER_IN_LINE.search(line)
    return line[found.start() :] if found else ""


def _without_tags(content: str) -> str:
    """Remove thoughts in tags. A tag without its other half counts unless it stands in quotes."""
    tags = until_stopped(_TAG.finditer(content))
    last_end = {_name(tag): tag.start() for tag in tags if tag["end"]}
    kept, inside, start = StringIO(), "", 0
    for tag in until_stopped(_TAG.finditer(content)):
        name = _name(tag)
        if inside and not (tag["end"] and name == inside):
            continue
        if inside:
            inside, start = "", tag.end()
        elif tag["end"] and not _is_quoted(content, tag):
            kept, start = StringIO(), tag.end()
        elif not tag["end"] and last_end.get(name, -1) > tag.start():
            inside = name
            kept.write(_text_between(content, start, tag.start()))
        elif not tag["end"] and not _is_quoted(content, tag):
            kept.write(_text_between(content, start, tag.start()))
            return kept.getvalue()
    kept.write(_text_between(content, start, len(content)))
    return kept.getvalue()


def _text_between(content: str, start: int, end: int) -> str:
    """Return the text between two thoughts."""
    text = content[start:end]
    return text.lstrip() if start else text


def _name(tag: re.Match[str]) -> str:
    return tag["name"].lower()


def _is_quoted(content: str, tag: re.Match[str]) -> bool:
    return content[max(0, tag.start() - 1) : tag.start()] in _QUOTES and tag.start() > 0
