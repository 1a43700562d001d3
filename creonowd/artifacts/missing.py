"""What is said of a file that is not there: that it has to be made first, or that it is unknown.

Knows records; looks at no disk.
"""

from creonowd.artifacts.refs import Record
from creonowd.errors import DaemonError, ErrorCode


class AbsentError(Exception):
    """A lazy file has not been made, or was cleaned."""

    def __init__(self, record: Record) -> None:
        super().__init__(record.id)
        self.record = record


def unknown() -> DaemonError:
    """Say that a conversation has no such file."""
    return DaemonError(
        ErrorCode.NOT_FOUND, "This conversation has no such file; list what it has.", field="id"
    )
