"""The one place where exceptions become wire errors."""

import errno
from collections.abc import Iterator
from typing import cast

import msgspec
import structlog

from creonowd.clock import Clock
from creonowd.errors import DaemonError, ErrorCode, Wording, disk_error
from creonowd.rpc.channel import invalid_payload

_DISK_CODES = {ErrorCode.STORAGE_FULL, ErrorCode.IO_ERROR}
_DISK_ERRORS = {
    *(errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT),
    *(errno.EROFS, errno.EIO, errno.EACCES, errno.EPERM),
}

log = structlog.stdlib.get_logger(__name__)


def as_daemon_error(error: Exception, channel: str, clock: Clock) -> DaemonError:
    """Turn what a handler raised into the error that the client gets.

    Of an unexpected exception the client gets only a reference; the log has the rest under it.
    """
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in _DISK_ERRORS:
            return _log_disk_error(disk_error(cause, "a file"), channel)
        if isinstance(cause, DaemonError):
            return _without_frames(_log_disk_error(cause, channel))
        if isinstance(cause, msgspec.ValidationError):
            return invalid_payload(cause)
    reference = clock.new_id("err")
    log.error("internal_error", channel=channel, reference=reference, exc_info=error)
    return DaemonError(
        ErrorCode.INTERNAL,
        Wording(
            f"Something went wrong inside the daemon; main.log has it under {reference}.",
            f"守护进程内部出错；main.log 中的编号为 {reference}。",
        ),
        reference=reference,
    )


def _without_frames(error: DaemonError) -> DaemonError:
    """Cut an error off from where it was raised: its frames would keep a whole payload in memory."""
    error.__context__ = None
    return error.with_traceback(None)


def _log_disk_error(error: DaemonError, channel: str) -> DaemonError:
    """Log an error of the disk, and return it."""
    if error.code in _DISK_CODES and "reason" in error.details:
        log.warning("disk_refused", channel=channel, code=error.code, **error.details)
    return error


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors inside a group of errors, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        for inner in group.exceptions:
            yield from causes(inner)
    else:
        yield error
