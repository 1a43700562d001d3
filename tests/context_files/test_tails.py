"""The last lines are those of `tail(1)`, and only the end of a file is read for them."""

import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.context_files.slices import ByteRange, count_lines, tail
from creonowd.storage.safe_folder import OpenFile
from tests.context_files.files import file_of

ENOUGH = 1 << 20
LINES = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"a", "红".encode(), b"\xff", b""]), max_size=40
).map(b"".join)


def simple_tail(data: bytes, lines: int) -> bytes:
    pieces = [piece + b"\n" for piece in data.split(b"\n")]
    pieces[-1] = pieces[-1][:-1]
    whole = [piece for piece in pieces if piece]
    return b"".join(whole[-lines:])


@given(LINES, st.integers(1, 10))
def test_tail_gives_the_last_lines(data: bytes, lines: int) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cut = tail(file, lines, ENOUGH)

    assert data[cut.start : cut.end] == simple_tail(data, lines)
    assert count_lines(data[cut.start : cut.end]) <= lines


@pytest.mark.requirement("CF-025")
@settings(max_examples=25)
@given(LINES, st.integers(1, 10))
def test_tail_agrees_with_the_system_tail(data: bytes, lines: int) -> None:
    """Without a `tail` on this machine the reference above stands in for it."""
    program = shutil.which("tail")
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cut = tail(file, lines, ENOUGH)
        path = Path(folder) / "file"
        expected = (
            subprocess.run(
                [program, "-n", str(lines), path], capture_output=True, check=True
            ).stdout
            if program
            else simple_tail(data, lines)
        )

    assert data[cut.start : cut.end] == expected


def test_tail_works_across_the_blocks_it_reads(tmp_path: Path) -> None:
    data = b"".join(b"%d %s\n" % (i, b"x" * (i % 97)) for i in range(5000))
    with file_of(tmp_path, data) as file:
        cut = tail(file, 2000, ENOUGH)

    assert data[cut.start :] == simple_tail(data, 2000)


def test_a_last_line_without_a_newline_is_a_line(tmp_path: Path) -> None:
    with file_of(tmp_path, b"one\ntwo\nthree") as file:
        cut = tail(file, 2, ENOUGH)

    assert cut == ByteRange(4, 13, done=True)


def test_one_endless_line_is_cut_at_a_character(tmp_path: Path) -> None:
    data = "红".encode() * 1000
    with file_of(tmp_path, data) as file:
        cut = tail(file, 5, 100)

    assert not cut.done
    assert data[cut.start :].decode("utf-8") == "红" * 34


class CountingFile(OpenFile):
    """An open file that remembers how many bytes were asked of it."""

    asked = 0

    def read_at(self, offset: int, length: int) -> bytes:
        self.asked += length
        return super().read_at(offset, length)


def test_only_the_end_of_a_huge_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 30)
        file.seek(0, 2)
        file.write(b"\n" + b"last line\n" * 300)

    with path.open("rb", buffering=0) as plain:
        counting = CountingFile(plain)
        cut = tail(counting, 200, ENOUGH)

    assert cut.end - cut.start == 2000
    assert counting.asked < 200_000
