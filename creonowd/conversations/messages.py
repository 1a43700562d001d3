"""What is said in a conversation, by whom. Knows shapes; knows no round and no disk."""

from enum import StrEnum
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

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
