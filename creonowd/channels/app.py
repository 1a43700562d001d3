"""`app:*` — ping, health and metrics of the daemon."""

from creonowd import __version__
from creonowd.engine.services import Session
from creonowd.errors import Language
from creonowd.model import Empty, Model, Result
from creonowd.rpc.channel import Channel
from creonowd.rpc.requests import ChannelMetrics
from creonowd.rpc.server import PING


class Degradation(Model):
    """One thing that does not work as it should, and what to do about it."""

    part: str
    """Which part it is: `projects`, `budgets`, `tokenizer`, `sources`, `retrieval`, `documents` or
    `watching`."""
    reason: str
    """What is wrong, as a sentence in the connection's language."""
    remedy: str
    """What a person can do about it, in the connection's language."""


class Health(Result):
    """`ok` when nothing is degraded."""

    status: str
    """`ok`, or `degraded` if anything is listed in `degraded`."""
    version: str
    """The daemon's version."""
    uptime_ms: int
    """For how many milliseconds it has been running."""
    degraded: list[Degradation]
    """Each part that does not work as it should; empty if all do."""


class MetricsReport(Result):
    """Counters since the daemon started."""

    channels: dict[str, ChannelMetrics]
    """The figures of every channel that was called, by its name."""
    counters: dict[str, int]
    """Further counts by name: requests refused by code, unknown notifications, unknown fields."""
    connections: int
    """How many connections are open now."""


def health(session: Session, params: Empty) -> Health:
    """Report what is degraded and why."""
    chinese = session.connection.language is Language.CHINESE
    degraded = [
        Degradation(
            part=part,
            reason=trouble.reason.text(chinese=chinese),
            remedy=trouble.remedy.text(chinese=chinese),
        )
        for part, trouble in sorted(session.troubles.current().items())
    ]
    return Health(
        status="degraded" if degraded else "ok",
        version=__version__,
        uptime_ms=session.server.uptime_ms,
        degraded=degraded,
    )


def metrics(session: Session, params: Empty) -> MetricsReport:
    """Report counters and latency percentiles per channel."""
    counts = session.server.metrics
    return MetricsReport(
        channels=counts.channels(),
        counters={name: count for name, count in sorted(counts.counters.items()) if count},
        connections=len(session.server.connections),
    )


CHANNELS = (
    PING,
    Channel("app:health", health),
    Channel("app:metrics", metrics),
)
