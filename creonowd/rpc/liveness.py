"""`app:ping`: a sign of life, given before anything else is loaded. Needs nothing but a clock."""

import os
from typing import Annotated, Protocol

from msgspec import Meta

from creonowd import __version__
from creonowd.clock import Clock
from creonowd.model import Empty, Result
from creonowd.rpc.channel import Channel


class HasClock(Protocol):
    """All that a sign of life needs to know."""

    @property
    def clock(self) -> Clock:
        """The daemon's clock."""
        ...


class Pong(Result):
    """A sign of life."""

    pong: bool
    version: str
    pid: int
    now_ms: Annotated[int, Meta(description="milliseconds since the epoch")]


def ping(session: HasClock, params: Empty) -> Pong:  # noqa: ARG001 - every handler takes a payload
    """Answer at once."""
    return Pong(pong=True, version=__version__, pid=os.getpid(), now_ms=session.clock.now_ms())


PING = Channel("app:ping", ping)
