"""The one place where exceptions become wire errors. Knows no channel."""

import errno
from collections.abc import Iterator
from typing import cast

import msgspec
import structlog

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, disk_error
from creonowd.rpc.channel import misfit

_DISK = {ErrorCode.STORAGE_FULL, ErrorCode.IO_ERROR}
_REFUSALS = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT),
    *(errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM),
}

log = structlog.stdlib.get_logger(__name__)


def as_daemon_error(error: Exception, channel: str, clock: Clock) -> DaemonError:
    """Turn whatever a handler raised into what the client may know.

    The client gets a reference; the log gets the rest under the same reference.
    """
    for leaf in leaves(error):
        if isinstance(leaf, OSError) and leaf.errno in _REFUSALS:
            return _refused(disk_error(leaf, "a file"), channel)
        if isinstance(leaf, DaemonError):
            return _refused(leaf, channel)
        if isinstance(leaf, msgspec.ValidationError):
            return misfit(leaf)
    reference = clock.new_id("err")
    log.error("internal_error", channel=channel, reference=reference, exc_info=error)
    return DaemonError(
        ErrorCode.INTERNAL,
        f"Something went wrong inside the daemon; main.log has it under {reference}.",
        reference=reference,
    )


def _refused(error: DaemonError, channel: str) -> DaemonError:
    """Leave a trace of what the disk refused, for whoever asks later what happened."""
    if error.code in _DISK and "reason" in error.details:
        log.warning("disk_refused", channel=channel, code=error.code, **error.details)
    return error


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Walk what really went wrong inside an error or a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for inner in group.exceptions:
            yield from leaves(inner)
    else:
        yield error
