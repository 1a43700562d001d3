"""Counts, latencies and errors of each channel."""

from collections import Counter, deque
from collections.abc import Sequence

from creonowd.model import Model

LATENCIES = 1024


class ChannelMetrics(Model):
    """What one channel did since the daemon started; latencies are of its last 1024 requests."""

    count: int
    errors: dict[str, int]
    in_flight: int
    p50_ms: float
    p95_ms: float
    p99_ms: float


class _ChannelRecord:
    def __init__(self) -> None:
        self.count = 0
        self.in_flight = 0
        self.errors: Counter[str] = Counter()
        self.seconds: deque[float] = deque(maxlen=LATENCIES)


class Metrics:
    """Counters of one daemon."""

    def __init__(self) -> None:
        self.counters: Counter[str] = Counter()
        self._channels: dict[str, _ChannelRecord] = {}

    def start(self, channel: str) -> None:
        """Count a request that begins."""
        self._of(channel).in_flight += 1

    def finish(self, channel: str, seconds: float, code: str | None) -> None:
        """Count a request that has ended; `code` is None when it succeeded."""
        record = self._of(channel)
        record.in_flight -= 1
        record.count += 1
        record.seconds.append(seconds)
        if code is not None:
            record.errors[code] += 1

    def channels(self) -> dict[str, ChannelMetrics]:
        """Summarise every channel that was called."""
        return {name: _summary(record) for name, record in sorted(self._channels.items())}

    def _of(self, channel: str) -> _ChannelRecord:
        record = self._channels.get(channel)
        if record is None:
            record = self._channels[channel] = _ChannelRecord()
        return record


def percentile(ordered: Sequence[float], share: float) -> float:
    """Pick the nearest-rank percentile of sorted values; 0 when there are none."""
    if not ordered:
        return 0.0
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _summary(record: _ChannelRecord) -> ChannelMetrics:
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
