"""How often, how fast and how badly each channel was answered. Knows numbers, never payloads."""

from collections import Counter, deque
from collections.abc import Sequence

from creonowd.model import Model

KEPT = 1024


class ChannelMetrics(Model):
    """What one channel did since the daemon started; latencies are of its last 1024 requests."""

    count: int
    errors: dict[str, int]
    in_flight: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class _Record:
    def __init__(self) -> None:
        self.count = 0
        self.in_flight = 0
        self.errors: Counter[str] = Counter()
        self.seconds: deque[float] = deque(maxlen=KEPT)


class Metrics:
    """Counters of one daemon."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self._channels: dict[str, _Record] = {}

    def started(self, channel: str) -> None:
        """Note that a request of this channel is being worked on."""
        self._of(channel).in_flight += 1

    def finished(self, channel: str, seconds: float, code: str | None) -> None:
        """Note how it ended: `code` is None when it went well."""
        record = self._of(channel)
        record.in_flight -= 1
        record.count += 1
        record.seconds.append(seconds)
        if code is not None:
            record.errors[code] += 1

    def channels(self) -> dict[str, ChannelMetrics]:
        """Summarise every channel that was ever asked."""
        return {name: _summary(record) for name, record in sorted(self._channels.items())}

    def _of(self, channel: str) -> _Record:
        record = self._channels.get(channel)
        if record is None:
            record = self._channels[channel] = _Record()
        return record


def percentile(ordered: Sequence[float], share: float) -> float:
    """Pick the nearest-rank percentile of sorted values; 0 when there are none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _summary(record: _Record) -> ChannelMetrics:
    ordered = sorted(record.seconds)
    p50, p95, p99 = (round(percentile(ordered, share) * 1000, 3) for share in (0.5, 0.95, 0.99))
    return ChannelMetrics(
        count=record.count,
        errors=dict(sorted(record.errors.items())),
        in_flight=record.in_flight,
        p50_ms=p50,
        p95_ms=p95,
        p99_ms=p99,
    )
