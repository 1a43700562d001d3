"""A channel: a name, a typed handler, who may call it and for how long.

Knows how to read a handler's types; knows no handler.
"""

import inspect
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import cached_property
from typing import Any, get_type_hints

import msgspec
from msgspec import UNSET, UnsetType

from creonowd.errors import ErrorCode
from creonowd.model import Empty
from creonowd.rpc.payload import PayloadReader

Handler = Callable[[Any, Any], Any] | Callable[[Any, Any], Awaitable[Any]]


class Role(StrEnum):
    """What a connection may do. An owner may do all that a renderer may."""

    OWNER = "owner"
    RENDERER = "renderer"


class Deadline(StrEnum):
    """How long a request may take unless it says so itself."""

    REQUEST = "request"
    SKILL = "skill"
    NONE = "none"


class Channel:
    """One row of the table of contents.

    A handler that is a plain function is answered inline; a coroutine function gets a task.
    An `open` channel may be called before any token was shown. One with `envelope` answers
    failures as a result of the form `{ok: false, error}` and never fails as a call. `refusal` is
    what a connection is told that lacks the role.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        role: Role = Role.RENDERER,
        deadline: Deadline = Deadline.REQUEST,
        open: bool = False,  # noqa: A002 - the word for a channel that needs no token
        envelope: bool = False,
        refusal: ErrorCode = ErrorCode.FORBIDDEN,
    ) -> None:
        self.name = name
        self.handler = handler
        self.role = role
        self.deadline = deadline
        self.open = open
        self.envelope = envelope
        self.refusal = refusal

    @cached_property
    def inline(self) -> bool:
        """Whether the handler never waits."""
        return not inspect.iscoroutinefunction(self.handler)

    @cached_property
    def params(self) -> type[Any]:
        """The struct that the payload must fit."""
        return self._hints.get("params", Empty)

    @cached_property
    def payload(self) -> PayloadReader:
        """What decodes the payload."""
        return PayloadReader(self.params)

    @cached_property
    def message(self) -> msgspec.json.Decoder[Any]:
        """What decodes a whole request with such a payload."""
        fields: list[tuple[str, Any] | tuple[str, Any, Any]] = [
            *(("jsonrpc", str), ("method", str), ("params", self.params)),
            ("id", int | float | str | UnsetType | None, UNSET),
        ]
        return msgspec.json.Decoder(msgspec.defstruct("Message", fields))

    @cached_property
    def result(self) -> Any:
        """The type of the answer."""
        return self._hints.get("return", None)

    @property
    def summary(self) -> str:
        """The first line of the handler's docstring."""
        return (inspect.getdoc(self.handler) or "").partition("\n")[0]

    @cached_property
    def _hints(self) -> dict[str, Any]:
        return get_type_hints(self.handler, include_extras=True)


class Notification:
    """An event that the daemon sends; `fields` is the struct of its own fields."""

    def __init__(self, name: str, fields: type[Any]) -> None:
        self.name = name
        self.fields = fields


class HostCall:
    """A request that the daemon sends to a client."""

    def __init__(self, name: str, params: type[Any], result: type[Any]) -> None:
        self.name = name
        self.params = params
        self.result = result
