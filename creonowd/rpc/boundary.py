"""The one place where exceptions become wire errors. Knows no channel."""

from collections.abc import Iterator
from typing import cast

import msgspec
import structlog

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.payload import misfit

log = structlog.stdlib.get_logger(__name__)


def as_daemon_error(error: Exception, channel: str, clock: Clock) -> DaemonError:
    """Turn whatever a handler raised into what the client may know.

    The client gets a reference; the log gets the rest under the same reference.
    """
    for leaf in leaves(error):
        if isinstance(leaf, DaemonError):
            return leaf
        if isinstance(leaf, msgspec.ValidationError):
            return misfit(leaf)
    reference = clock.new_id("err")
    log.error("internal_error", channel=channel, reference=reference, exc_info=error)
    return DaemonError(
        ErrorCode.INTERNAL,
        f"Something went wrong inside the daemon; main.log has it under {reference}.",
        reference=reference,
    )


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Walk what really went wrong inside an error or a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for inner in group.exceptions:
            yield from leaves(inner)
    else:
        yield error
