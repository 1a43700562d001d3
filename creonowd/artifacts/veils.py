"""Which lines of a file hold a secret: found a block of lines at a time, when asked, and remembered.

Knows blocks and lines; what a secret looks like, only the finder knows.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence

from creonowd.artifacts.excerpts import line_end
from creonowd.artifacts.pages import text
from creonowd.artifacts.redacting import Finder, surroundings
from creonowd.artifacts.refs import Survey
from creonowd.artifacts.tree import OpenFile
from creonowd.redaction import Stretch

BLOCK = 32 * 1024
MOST_FILES = 64
MOST_BLOCKS = 65_536


class Veil:
    """The lines of one file that hold a secret, by the bytes where they begin."""

    def __init__(self, finder: Finder, block: int = BLOCK) -> None:
        self._finder = finder
        self._block = block
        self._blocks: dict[int, frozenset[int]] = {}

    def hides(self, file: OpenFile, start: int) -> bool:
        """Tell whether the line that begins at `start` holds a secret, or a part of one."""
        block = start // self._block
        known = self._blocks.get(block)
        if known is None:
            if len(self._blocks) >= MOST_BLOCKS:
                self._blocks.clear()
            known = self._blocks[block] = frozenset(self._secret_lines(file, block * self._block))
        return start in known

    def _secret_lines(self, file: OpenFile, place: int) -> Iterator[int]:
        """Tell where the secret ones begin, of the lines that begin in the block at `place`."""
        last = min(place + self._block, file.size)
        start = place if place == 0 else line_end(file, place - 1) + 1
        if start >= last:
            return
        end = line_end(file, last - 1)
        low, high = surroundings(file, start, end)
        window = file.read_at(low, high - low)
        decoded = text(window)
        touched = _touched(decoded, self._finder.find(decoded))
        if touched:
            lines = (low + offset for offset in _starts(window, touched))
            yield from (line for line in lines if start <= line < last)


class Veils:
    """The veils of the files that were last searched, by the hash of what they hold."""

    def __init__(self, most: int = MOST_FILES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Finder, str], Veil] = OrderedDict()

    def of(self, survey: Survey | None, finder: Finder) -> Veil:
        """Give the veil of a file as this finder sees it; what is not surveyed is not remembered."""
        if survey is None:
            return Veil(finder)
        key = (finder, survey.sha256)
        with self._lock:
            veil = self._kept.setdefault(key, Veil(finder))
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
        return veil


def _touched(decoded: str, stretches: Sequence[Stretch]) -> list[int]:
    """Number the lines of a text, from 0, that any stretch touches."""
    lines: dict[int, None] = {}
    line = place = 0
    for start, end, _ in stretches:
        line += decoded.count("\n", place, start)
        place = start
        lines.update(dict.fromkeys(range(line, line + decoded.count("\n", start, end) + 1)))
    return list(lines)


def _starts(window: bytes, lines: Sequence[int]) -> Iterator[int]:
    """Tell where lines begin; a newline is one whether or not the bytes around it are UTF-8."""
    line = place = 0
    for wanted in lines:
        while line < wanted:
            place = window.find(b"\n", place) + 1
            line += 1
        yield place
