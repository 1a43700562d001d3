"""Counters count, percentiles are of what was measured, memory is bounded."""

from creonowd.rpc.metrics import LATENCIES, Metrics, percentile


def test_each_channel_is_counted_with_its_errors_and_latencies() -> None:
    metrics = Metrics()
    for taken in range(1, 101):
        metrics.start("a")
        metrics.finish("a", taken / 1000, "TIMEOUT" if taken % 10 == 0 else None)
    metrics.start("b")

    report = metrics.channels()

    assert (report["a"].count, report["a"].in_flight, report["a"].errors) == (
        100,
        0,
        {"TIMEOUT": 10},
    )
    assert (report["a"].p50_ms, report["a"].p95_ms, report["a"].p99_ms) == (51.0, 96.0, 100.0)
    assert (report["b"].count, report["b"].in_flight, report["b"].p50_ms) == (0, 1, 0.0)


def test_only_the_last_latencies_are_kept() -> None:
    metrics = Metrics()
    for taken in (1.0, *([0.001] * LATENCIES)):
        metrics.start("a")
        metrics.finish("a", taken, None)

    assert metrics.channels()["a"].p99_ms == 1.0


def test_a_percentile_of_nothing_is_nothing() -> None:
    assert percentile([], 0.5) == 0.0
