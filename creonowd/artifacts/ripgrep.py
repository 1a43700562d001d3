"""Search with ripgrep: it gets the open file and tells numbers and offsets of lines, never text.

Knows how to start, read and stop `rg`; knows nothing of refs. The file is its standard input, so
no path, no ignore file and no link can come between.
"""

import os
import shutil
import subprocess
import sysconfig
import threading
from collections.abc import Iterator
from pathlib import Path

from creonowd.artifacts.patterns import for_ripgrep
from creonowd.artifacts.searching import Found, Place, Query
from creonowd.artifacts.tree import OpenFile

_BLOCK = 256 * 1024
_MATCHED, _NO_MATCH = 0, 1
_OPTIONS = (
    "--no-config",
    "-uu",
    "--text",
    "--encoding=none",
    "--color=never",
    "--no-heading",
    "--no-filename",
    "--no-messages",
    "--line-number",
    "--byte-offset",
    # The line itself would be repeated, however long; this leaves a short note in its place.
    "--max-columns=1",
)


def find_ripgrep(setting: str = "auto") -> Path | None:
    """Find the program: beside our own interpreter, on the PATH, or where the setting says."""
    if setting == "off":
        return None
    if setting != "auto":
        return Path(setting) if Path(setting).is_file() else None
    found = shutil.which("rg", path=sysconfig.get_path("scripts")) or shutil.which(
        "rg", path=_absolute_path()
    )
    return Path(found) if found else None


def run(program: Path, file: OpenFile, query: Query) -> Found | None:
    """Find every line that matches, until the time is up; None if ripgrep could not tell."""
    file.file.seek(query.start.place.offset)
    try:
        process = subprocess.Popen(
            [program, *_OPTIONS, f"--regexp={for_ripgrep(query.translated)}", "-"],
            stdin=file.file,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
    except OSError:
        return None
    timer = threading.Timer(query.limit.left, process.kill)
    timer.start()
    try:
        with process, query.stop.calling(process.kill):
            places, total = _read(process, query)
    finally:
        timer.cancel()
    query.stop.check()
    if process.returncode in {_MATCHED, _NO_MATCH}:
        return Found(places, total, complete=True)
    return Found(places, total, complete=False) if query.limit.over else None


def _read(process: "subprocess.Popen[bytes]", query: Query) -> tuple[list[Place], int]:
    places: list[Place] = []
    total = 0
    pending = b""
    for block in _blocks(process):
        total += block.count(b"\n")
        if len(places) >= query.most:
            continue
        *lines, pending = (pending + block).split(b"\n", query.most + 1)
        places += [_place(line, query.start.place) for line in lines[: query.most - len(places)]]
    return places, total


def _blocks(process: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    assert process.stdout is not None
    while block := os.read(process.stdout.fileno(), _BLOCK):
        yield block


def _place(line: bytes, start: Place) -> Place:
    number, offset, _ = line.split(b":", 2)
    return Place(start.line + int(number) - 1, start.offset + int(offset))


def _absolute_path() -> str:
    """Leave out relative entries, and on Windows the current folder: they could be anyone's."""
    entries = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if Path(entry).is_absolute())
