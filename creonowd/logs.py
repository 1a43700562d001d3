"""JSON lines in `<userData>/logs/main.log`, rotated, redacted in the last processor.

Knows how a line is written; never what happened.
"""

import logging
import logging.handlers
import queue
import sys
import threading
from pathlib import Path
from typing import TextIO

import structlog
from structlog.typing import Processor

from creonowd.redaction import Redactor, event_redactor, redact_event
from creonowd.settings import Settings

LOG_FOLDER = "logs"
LOG_FILE = "main.log"
PAUSE_SECONDS = 0.1

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
    redacting = redact_event if redactor is None else event_redactor(redactor)
    json_lines = structlog.processors.JSONRenderer(ensure_ascii=False)
    file.setFormatter(_formatter(redacting, json_lines))
    handlers: list[logging.Handler] = [file]
    if terminal is not None and terminal.isatty():
        console = logging.StreamHandler(terminal)
        console.setFormatter(
            _formatter(redacting, structlog.dev.ConsoleRenderer(colors=True, timestamp_key="time"))
        )
        handlers.append(console)
    _write_in_a_thread(handlers, settings.log_level.upper())
    _configure_structlog()


def _write_in_a_thread(handlers: list[logging.Handler], level: str) -> None:
    """Render, redact and write beside the event loop: neither a disk nor a rule may hold it up."""
    close()
    lines: queue.SimpleQueue[logging.LogRecord | None] = queue.SimpleQueue()
    hurry = threading.Event()
    listener = _Unhurried(lines, hurry, handlers)
    listener.start()
    _listeners.append(listener)
    logging.basicConfig(handlers=[_Queued(lines, hurry)], level=level, force=True)
    logging.getLogger("websockets").setLevel(logging.WARNING)
    _note_only_what_is_written()


def _note_only_what_is_written() -> None:
    """Leave out of each record what no line of ours tells, in the way that `logging` documents."""
    logging._srcfile = None  # pyright: ignore[reportPrivateUsage]
    logging.logThreads = False
    logging.logProcesses = False
    logging.logMultiprocessing = False


class _Unhurried(logging.handlers.QueueListener):
    """Lets a moment pass before it writes, unless someone is in a hurry.

    Whoever renders a line holds the interpreter, and the request that it tells of would wait.
    """

    def __init__(
        self,
        lines: queue.SimpleQueue[logging.LogRecord | None],
        hurry: threading.Event,
        handlers: list[logging.Handler],
    ) -> None:
        super().__init__(lines, *handlers)
        self._lines = lines
        self._hurry = hurry

    def dequeue(self, block: bool) -> logging.LogRecord:  # noqa: FBT001 - the base's form
        """Wait for a line and, if it is the first after a silence, for those that follow it."""
        silence = self._lines.empty()
        record = super().dequeue(block)
        if silence and self._hurry.wait(PAUSE_SECONDS):
            self._hurry.clear()
        return record

    def enqueue_sentinel(self) -> None:
        """Ask for the end, and for what is queued to be written now."""
        super().enqueue_sentinel()
        self._hurry.set()


class _Queued(logging.handlers.QueueHandler):
    """Hands records over as they are; the thread renders them, a warning at once."""

    def __init__(
        self, lines: queue.SimpleQueue[logging.LogRecord | None], hurry: threading.Event
    ) -> None:
        super().__init__(lines)
        self._hurry = hurry

    def enqueue(self, record: logging.LogRecord) -> None:
        """Pass a record on."""
        super().enqueue(record)
        if record.levelno >= logging.WARNING:
            self._hurry.set()

    def prepare(self, record: logging.LogRecord) -> logging.LogRecord:
        return record


class _RotatingFile(logging.handlers.RotatingFileHandler):
    """Rotates once it is full; asking before every line whether it fits would format each twice."""

    def shouldRollover(self, record: logging.LogRecord) -> bool:  # noqa: N802 - the base's name
        """Tell whether the file has reached its size."""
        return self.stream is not None and 0 < self.maxBytes <= self.stream.tell()

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the base's name
        """Lose a line that the disk refuses: the base would print it, unredacted, to stderr."""


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
        processors=[*_shared(), structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    sys.excepthook = _log_uncaught


def _shared() -> list[Processor]:
    return [
        structlog.stdlib.filter_by_level,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="time"),
    ]


def _formatter(redacting: Processor, renderer: Processor) -> logging.Formatter:
    foreign: list[Processor] = [structlog.stdlib.add_log_level]
    return structlog.stdlib.ProcessorFormatter(
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redacting,
            renderer,
        ],
        foreign_pre_chain=foreign,
    )


def _log_uncaught(kind: type[BaseException], error: BaseException, trace: object) -> None:
    structlog.stdlib.get_logger(__name__).critical("uncaught", exc_info=(kind, error, trace))
    sys.__excepthook__(kind, error, trace)  # pyright: ignore[reportArgumentType]
