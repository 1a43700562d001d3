"""`$/progress` for long work. Knows only the request that is running here."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

reporter: ContextVar[Callable[[Any], None] | None] = ContextVar("reporter", default=None)


def report_progress(value: Any) -> None:
    """Tell the caller how far the current request is; nothing happens if nobody asked.

    Call it on the event loop; from a worker thread go through `anyio.from_thread`.
    """
    if (report := reporter.get()) is not None:
        report(value)
