"""How the last daemon ended and what it complained about, from its log and the sign it left up."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from creonowd.cli.finding import NOTE, OK, Finding
from creonowd.daemon import endpoint
from creonowd.logs import LOG_FILE, LOG_FOLDER

STARTED, STOPPED = "daemon_started", "daemon_stopped"
READ_BYTES = 4 * 1024 * 1024
STEP_BACK = timedelta(minutes=1)
GRAVE = {"warning", "error", "critical"}


def look(user_data: Path) -> Iterator[Finding]:
    """Tell how the last daemon that is no more ended, and which warnings the log holds since its start."""
    lines = _lines(user_data / LOG_FOLDER / LOG_FILE)
    signed = endpoint.running_pid(user_data)
    running = signed if endpoint.is_running(user_data) else None
    yield from _clock(lines)
    lives = [at for at, line in enumerate(lines) if line.get("event") == STARTED]
    if lives:
        yield from _complaints(lines[lives[-1] :])
    over = [at for at in lives if lines[at].get("pid") != running]
    if signed != running:
        yield _killed(f"with pid {signed}")
    elif over:
        yield _end(lines[over[-1] :])


def _end(lines: list[dict[str, Any]]) -> Finding:
    following = [line["event"] for line in lines[1:] if line.get("event") in {STARTED, STOPPED}]
    if following[:1] == [STOPPED]:
        reason = next(line.get("reason") for line in lines if line.get("event") == STOPPED)
        return Finding(part="last end", state=OK, found=f"in order: {reason}")
    return _killed(f"of {lines[0].get('time')}")


def _killed(which: str) -> Finding:
    found = f"the daemon {which} was killed or the machine went down"
    remedy = "Nothing to mend: what was acknowledged is on the disk."
    return Finding(part="last end", state=NOTE, found=found, remedy=remedy)


def _clock(lines: list[dict[str, Any]]) -> Iterator[Finding]:
    """Tell of a clock that was set back; one that was set ahead looks like a long silence."""
    times = [time for line in lines if (time := _time(line)) is not None]
    back = [pair for pair in pairwise(times) if pair[0] - pair[1] > STEP_BACK]
    if back:
        before, after = (time.isoformat(timespec="seconds") for time in back[-1])
        found = f"it was set back from {before} to {after}"
        remedy = "Nothing to mend: what is kept is in the order in which it came."
        yield Finding(part="clock", state=NOTE, found=found, remedy=remedy)


def _time(line: dict[str, Any]) -> datetime | None:
    try:
        return datetime.fromisoformat(str(line.get("time")))
    except ValueError:
        return None


def _complaints(lines: list[dict[str, Any]]) -> Iterator[Finding]:
    told = Counter(_told(line) for line in lines if line.get("level") in GRAVE)
    if told:
        found = ", ".join(f"{count} × {name}" for name, count in told.most_common())
        remedy = f"{LOG_FOLDER}/{LOG_FILE} has them in full."
        yield Finding(part="log", state=NOTE, found=found, remedy=remedy)


def _told(line: dict[str, Any]) -> str:
    code = line.get("code")
    return f"{line.get('event')} ({code})" if isinstance(code, str) else str(line.get("event"))


def _lines(path: Path) -> list[dict[str, Any]]:
    """Read the end of the log; a line that a kill or a full disk has torn is left out."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - READ_BYTES))
            data = file.read()
    except OSError:
        return []
    return [line for text in data.split(b"\n") if (line := _line(text)) is not None]


def _line(text: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
