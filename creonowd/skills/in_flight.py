"""The runs that are being carried out, so that anyone who may can stop one. Knows no provider."""

import contextlib
from collections.abc import Generator
from typing import NamedTuple

import anyio

from creonowd.errors import DaemonError, ErrorCode


class _Flight(NamedTuple):
    owner: str
    scope: anyio.CancelScope


class InFlight:
    """Runs by their id, each with the connection that started it."""

    def __init__(self) -> None:
        self._flights: dict[str, _Flight] = {}

    @contextlib.contextmanager
    def entered(self, run_id: str, owner: str) -> Generator[None]:
        """Carry out a run in the block; stopped, it ends as CANCELED. CONFLICT if the id is in use."""
        if run_id in self._flights:
            raise DaemonError(
                ErrorCode.CONFLICT, "A run with this runId is under way; use another.", runId=run_id
            )
        with anyio.CancelScope() as scope:
            self._flights[run_id] = _Flight(owner, scope)
            try:
                yield
            finally:
                del self._flights[run_id]
        # Also if it was done just then: whoever was told that it is stopped must not hear its end.
        if scope.cancel_called:
            raise DaemonError(ErrorCode.CANCELED, "The run was cancelled.", runId=run_id)

    def cancel(self, run_id: str, asker: str, *, any_run: bool) -> bool:
        """Stop a run, upstream call and all; tell whether there was one that the asker may stop."""
        flight = self._flights.get(run_id)
        if flight is None or not (any_run or flight.owner == asker):
            return False
        flight.scope.cancel()
        return True
