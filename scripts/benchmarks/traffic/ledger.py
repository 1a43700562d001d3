"""What was asked and answered, channel by channel. Knows no connection."""

from collections import Counter, defaultdict

from scripts.benchmarks.novel.crowd import percentile


class Ledger:
    """The latencies and refusals of one crowd; every request ends in exactly one of them."""

    def __init__(self) -> None:
        self.sent = 0
        self.stray = 0
        self.milliseconds: defaultdict[str, list[float]] = defaultdict(list)
        self.refused: Counter[str] = Counter()
        self.wrong: list[str] = []

    def answered(self, channel: str, milliseconds: float) -> None:
        """Note an answer."""
        self.milliseconds[channel].append(milliseconds)

    def turned_away(self, channel: str, code: str) -> None:
        """Note an error; being asked to come back later is one too."""
        self.refused[f"{channel} {code}"] += 1

    def expect(self, truth: object, what: str) -> None:
        """Note what is not as the daemon had acknowledged it."""
        if not truth:
            self.wrong.append(what)

    @property
    def answers(self) -> int:
        """How many requests were answered with a result."""
        return sum(map(len, self.milliseconds.values()))

    @property
    def silent(self) -> int:
        """How many requests never got any reply."""
        return self.sent - self.answers - self.refused.total()

    def shares(self, channel: str) -> str:
        """Spell p50, p95 and p99 of a channel."""
        taken = self.milliseconds.get(channel)
        if not taken:
            return "–"
        return " / ".join(f"{percentile(taken, share):.0f}" for share in (0.5, 0.95, 0.99))
