"""One pass over a file's bytes, as they are written: size, hash, and what a search wants to know.

Knows bytes and lines; opens no file.
"""

import codecs
import hashlib
from collections.abc import Iterable

from creonowd.artifacts.refs import BLOCK, Survey


class Surveyor:
    """Watches the bytes of one file go by."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
        self._size = 0
        self._line = 0
        self._longest_line = 0
        self._newlines: list[int] = []

    def add(self, data: bytes) -> None:
        """Look at the next bytes."""
        self._hash.update(data)
        self._decode(data, final=False)
        while data:
            room = BLOCK - self._size % BLOCK
            self._add_within_block(data[:room])
            data = data[room:]

    def survey(self) -> Survey:
        """Tell what has been seen; nothing may be added after."""
        self._decode(b"", final=True)
        return Survey(
            byte_size=self._size,
            sha256=self._hash.hexdigest(),
            utf8=self._decoder is not None,
            longest_line=max(self._longest_line, self._line),
            newlines=tuple(self._newlines),
        )

    def _add_within_block(self, data: bytes) -> None:
        if self._size % BLOCK == 0:
            self._newlines.append(0)
        first, last = data.find(b"\n"), data.rfind(b"\n")
        if first >= 0:
            # To measure every line would take longer than all the rest.
            self._longest_line = max(self._longest_line, self._line + first, last - first)
            self._line = 0
        self._line += len(data) - last - 1
        self._newlines[-1] += data.count(b"\n")
        self._size += len(data)

    def _decode(self, data: bytes, *, final: bool) -> None:
        if self._decoder is None:
            return
        try:
            self._decoder.decode(data, final)
        except UnicodeDecodeError:
            self._decoder = None


def survey(chunks: Iterable[bytes]) -> Survey:
    """Survey bytes that are at hand."""
    surveyor = Surveyor()
    for chunk in chunks:
        surveyor.add(chunk)
    return surveyor.survey()
