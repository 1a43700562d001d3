"""When to stop asking someone who keeps failing, and when to try again.

Pure: times are handed in, in seconds that never run backwards. Knows nobody by name.
"""

MOST_FAILURES = 3
REST_SECONDS = 30.0


class Breaker:
    """Counts failures in a row; after too many it rests, then lets one question through."""

    def __init__(
        self, most_failures: int = MOST_FAILURES, rest_seconds: float = REST_SECONDS
    ) -> None:
        self._most_failures = most_failures
        self._rest_seconds = rest_seconds
        self._failures = 0
        self._rests_until = 0.0
        self.reason = ""

    def allows(self, now: float) -> bool:
        """Tell whether to ask; the first who may after a rest asks for all."""
        if not self.is_open:
            return True
        if now < self._rests_until:
            return False
        self._rests_until = now + self._rest_seconds
        return True

    @property
    def is_open(self) -> bool:
        """Whether there were too many failures since the last success."""
        return self._failures >= self._most_failures

    def succeeded(self) -> None:
        """Note an answer."""
        self._failures = 0

    def failed(self, now: float, reason: str) -> bool:
        """Note a failure; tell whether it was the one too many."""
        self._failures += 1
        self.reason = reason
        if self.is_open:
            self._rests_until = now + self._rest_seconds
        return self._failures == self._most_failures
