"""`e2e:*` — events and failures on demand, for test harnesses; only with the setting `e2e`."""

from typing import Annotated, Any

import anyio
from msgspec import Meta, field

from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Empty, Params, Result
from creonowd.providers.fake import Fake, Script, ScriptedAnswer
from creonowd.providers.provider import Usage
from creonowd.rpc.channel import Channel, Role
from creonowd.rpc.requests import report_progress

STEPS = 10


class Sleep(Params):
    """How long to take."""

    ms: Annotated[int, Meta(ge=0, le=600_000)]
    """How long to take, in milliseconds."""


class Slept(Result):
    """How long it took."""

    slept: int
    """How long it took, in milliseconds."""


class Echo(Params):
    """Any value."""

    value: Any = None
    """Any JSON."""


class Echoed(Result):
    """The same value."""

    value: Any
    """The value that was sent."""


class CallBack(Params):
    """A method to call on the client."""

    method: str
    """The method that the daemon calls on this client."""
    params: Any = None
    """What it sends along."""
    timeout_ms: int = 5000
    """How long it waits for the answer, in milliseconds."""


class Answered(Result):
    """What the client answered."""

    value: Any
    """What the client returned."""


class Notify(Params):
    """An event to send to the client, some number of times."""

    method: str
    """The name of the event."""
    params: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its fields."""
    count: Annotated[int, Meta(ge=1, le=1_000_000)] = 1
    """How often it is sent."""


class Notified(Result):
    """How many were sent."""

    count: int
    """How many events were sent."""


class ScriptAi(Params):
    """The answers of the fake provider from now on, call by call."""

    steps: tuple[ScriptedAnswer, ...] = ()
    """One answer per call of the model that writes, in order; when they are used up, the fake
    answers as without a script."""
    verdicts: tuple[str, ...] = ()
    """One raw reply per call of the judging model, in order; the JSON that the judge expects, or
    anything else to see it fail."""
    verdict_usage: Usage | None = None
    """The tokens that the judging model reports for each of its calls."""


async def sleep(session: Session, params: Sleep) -> Slept:
    """Wait, and report progress in ten steps."""
    for step in range(STEPS):
        report_progress({"done": step, "of": STEPS})
        await anyio.sleep(params.ms / 1000 / STEPS)
    return Slept(slept=params.ms)


def echo(session: Session, params: Echo) -> Echoed:
    """Return what was sent, inline."""
    return Echoed(value=params.value)


async def echo_in_task(session: Session, params: Echo) -> Echoed:
    """Return what was sent, from a task of its own."""
    return Echoed(value=params.value)


async def call_back(session: Session, params: CallBack) -> Answered:
    """Call the client and return its answer."""
    value = await session.peer.call(params.method, params.params, object, params.timeout_ms)
    return Answered(value=value)


def notify(session: Session, params: Notify) -> Notified:
    """Send events to the client."""
    for _ in range(params.count):
        session.peer.notify(params.method, params.params)
    return Notified(count=params.count)


async def script_ai(session: Session, params: ScriptAi) -> Empty:
    """Set the answers of the fake provider, replacing earlier ones."""
    provider = await session.ai.open_provider(session.ai.chosen_name)
    if not isinstance(provider, Fake):
        raise DaemonError(ErrorCode.UNSUPPORTED, "Only the fake provider follows a script.")
    script = Script(
        steps=params.steps, verdicts=params.verdicts, verdict_usage=params.verdict_usage
    )
    provider.play(script)
    return Empty()


def fail(session: Session, params: Empty) -> None:
    """Fail with an unexpected exception."""
    raise ZeroDivisionError("planted")


CHANNELS = (
    Channel("e2e:sleep", sleep),
    Channel("e2e:echo", echo),
    Channel("e2e:echoInTask", echo_in_task),
    Channel("e2e:callback", call_back),
    Channel("e2e:notify", notify),
    Channel("e2e:ai:script", script_ai),
    Channel("e2e:fail", fail, role=Role.OWNER),
)
