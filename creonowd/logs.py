"""The log: JSON lines in `<userData>/logs/main.log`, rotated and redacted.

A thread renders, redacts and writes them, so that neither a disk nor a rule delays the event loop.
"""

import errno
import logging
import logging.handlers
import queue
import sys
import threading
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

from creonowd.redaction import RedactionEvidence, Redactor, event_redactor, redact_event
from creonowd.settings import Settings

LOG_FOLDER = "logs"
LOG_FILE = "main.log"
PAUSE_SECONDS = 0.1
MOST_QUEUED = 10_000

log = structlog.get_logger(__name__)

_listeners: list[logging.handlers.QueueListener] = []


def configure(
    user_data: Path,
    settings: Settings,
    terminal: TextIO | None = None,
    redactor: Redactor | None = None,
) -> None:
    """Send every log line of this process to the file, and a readable form to a terminal."""
    folder = user_data / LOG_FOLDER
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    file = _RotatingFile(
        folder / LOG_FILE,
        maxBytes=settings.log_max_bytes,
        backupCount=settings.log_backups,
        encoding="utf-8",
        errors="replace",
    )
    redact = redact_event if redactor is None else event_redactor(redactor)
    json_lines = structlog.processors.JSONRenderer(ensure_ascii=False)
    file.setFormatter(_formatter(redact, json_lines))
    handlers: list[logging.Handler] = [file]
    if terminal is not None and terminal.isatty():
        console = logging.StreamHandler(terminal)
        console.setFormatter(
            _formatter(redact, structlog.dev.ConsoleRenderer(colors=True, timestamp_key="time"))
        )
        handlers.append(console)
    _start_writer(handlers, settings.log_level.upper())
    _configure_structlog()


def redaction_event(project_id: str, evidence: Sequence[RedactionEvidence]) -> dict[str, Any]:
    """Return what is logged of a redaction: how many secrets of which kinds, never a secret."""
    return {
        "project_id": project_id,
        "sources": len({piece.source_ref for piece in evidence}),
        "matches": sum(piece.match_count for piece in evidence),
        "patterns": sorted({piece.pattern_id for piece in evidence}),
    }


def log_redaction(project_id: str, evidence: Sequence[RedactionEvidence]) -> None:
    """Log that secrets were redacted, if any were."""
    if evidence:
        log.info("context_redaction_applied", **redaction_event(project_id, evidence))


def _start_writer(handlers: list[logging.Handler], level: str) -> None:
    close()
    lines: queue.SimpleQueue[logging.LogRecord | None] = queue.SimpleQueue()
    at_once = threading.Event()
    listener = _DelayedListener(lines, at_once, handlers)
    listener.start()
    _listeners.append(listener)
    logging.basicConfig(handlers=[_QueueHandler(lines, at_once)], level=level, force=True)
    logging.getLogger("websockets").setLevel(logging.WARNING)
    _collect_only_what_is_written()


def _collect_only_what_is_written() -> None:
    """Leave out of each record what no line shows, in the way that `logging` documents.

    To log an event then takes the caller 7 µs instead of 10; most of the rest is the search for its
    line in the source.
    """
    logging._srcfile = None  # pyright: ignore[reportPrivateUsage]
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False


class _DelayedListener(logging.handlers.QueueListener):
    """Waits `PAUSE_SECONDS` before it writes, unless a warning or the end is queued.

    Rendering a line holds the interpreter lock, so the request that logged it would wait.
    """

    def __init__(
        self,
        lines: queue.SimpleQueue[logging.LogRecord | None],
        at_once: threading.Event,
        handlers: list[logging.Handler],
    ) -> None:
        super().__init__(lines, *handlers)
        self._lines = lines
        self._at_once = at_once

    def dequeue(self, block: bool) -> logging.LogRecord:  # noqa: FBT001 - the base's form
        """Wait for a record and, if the queue was empty, for those that follow it."""
        was_empty = self._lines.empty()
        record = super().dequeue(block)
        if was_empty and self._at_once.wait(PAUSE_SECONDS):
            self._at_once.clear()
        return record

    def enqueue_sentinel(self) -> None:
        """Queue the end, and write at once."""
        super().enqueue_sentinel()
        self._at_once.set()


class _QueueHandler(logging.handlers.QueueHandler):
    """Queues records as they are; a warning is written at once."""

    def __init__(
        self, lines: queue.SimpleQueue[logging.LogRecord | None], at_once: threading.Event
    ) -> None:
        super().__init__(lines)
        self._lines = lines
        self._at_once = at_once
        self.dropped = 0

    def enqueue(self, record: logging.LogRecord) -> None:
        """Queue a record; while the queue is full, drop and count it."""
        if self._lines.qsize() >= MOST_QUEUED:
            self.dropped += 1
            return
        if self.dropped:
            dropped, self.dropped = self.dropped, 0
            warning = logging.WARNING
            text = f"log_lines_dropped: {dropped}"
            super().enqueue(logging.LogRecord(__name__, warning, "", 0, text, None, None))
        super().enqueue(record)
        if record.levelno >= logging.WARNING:
            self._at_once.set()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        """Return the record as it is: the thread renders it."""
        return record


class _RotatingFile(logging.handlers.RotatingFileHandler):
    """Rotates once it is full; the base formats each line twice to see whether it fits."""

    def _open(self) -> TextIOWrapper:  # the base's hook for how the file is opened
        """Open the file; OSError if a pipe has its name: unread, it would hold up the start."""
        if Path(self.baseFilename).is_fifo():
            raise OSError(errno.EINVAL, f"{LOG_FOLDER}/{LOG_FILE} is no plain file")
        return super()._open()

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - the base's name
        """Return whether the file has reached its size."""
        return self.stream is not None and 0 < self.maxBytes <= self.stream.tell()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base's name
        """Drop a line that cannot be written: the base would print it, unredacted, to stderr."""


def quiet() -> None:
    """Log nowhere, for tests that have no user data."""
    logging.basicConfig(handlers=[logging.NullHandler()], force=True)
    _configure_structlog()


def close() -> None:
    """Write what is queued and close the file."""
    while _listeners:
        listener = _listeners.pop()
        listener.stop()
        for handler in listener.handlers:
            handler.close()


def _configure_structlog() -> None:
    structlog.configure(
        processors=[*_shared_processors(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    sys.excepthook = _log_uncaught


def _shared_processors() -> list[Processor]:
    return [
        structlog.stdlib.filter_by_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]


def _formatter(redact: Processor, renderer: Processor) -> logging.Formatter:
    foreign: list[Processor] = [structlog.stdlib.add_log_level]
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact,
            renderer,
        ],
        foreign_pre_chain=foreign,
    )


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: object) -> None:
    structlog.stdlib.get_logger(__name__).critical("uncaught", exc_info=(kind, error, trace))
    sys.__excepthook__(kind, error, trace)  # pyright: ignore[reportArgumentType]
