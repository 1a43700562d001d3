"""Pages join to the file, whatever its bytes and wherever they are cut."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from creonowd.context_files.slices import ByteRange, page, text
from creonowd.storage.safe_folder import OpenFile
from tests.context_files.files import file_of

BROKEN = [
    b"\xe4",
    b"\xb8",
    b"\xe4\xb8",
    b"\xff",
    b"\xf0\x9f\x98",
    b"\xed\xa0\x80",
    b"\xc0\xaf",
    b"\x00",
]
PIECES = st.one_of(
    st.text(max_size=8).map(lambda piece: piece.encode("utf-8", "replace")),
    st.sampled_from(["红楼梦", "😀👨‍👩‍👧", "𠮷野家", "a\r\n", "é"]).map(str.encode),
    st.sampled_from(BROKEN),
    st.binary(max_size=6),
)
DATA = st.lists(PIECES, max_size=12).map(b"".join)


def pages_of(file: OpenFile, limits: Iterator[int]) -> list[ByteRange]:
    cuts = [page(file, 0, next(limits))]
    while not cuts[-1].done:
        cuts.append(page(file, cuts[-1].end, next(limits)))
    return cuts


@given(DATA, st.lists(st.integers(1, 20), min_size=1))
def test_any_sequence_of_reads_rebuilds_the_bytes_and_the_text(
    data: bytes, limits: list[int]
) -> None:
    def endless() -> Iterator[int]:
        while True:
            yield from limits

    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cuts = pages_of(file, endless())

    assert b"".join(data[cut.start : cut.end] for cut in cuts) == data
    assert "".join(text(data[cut.start : cut.end]) for cut in cuts) == text(data)
    assert all(cut.end > cut.start for cut in cuts[:-1])


@given(DATA, st.integers(4, 20))
def test_a_client_that_adds_the_limit_to_the_offset_misses_nothing(data: bytes, limit: int) -> None:
    """Both ends snap the same way, so `nextOffset` may be ignored when the file is text."""
    data = text(data).encode("utf-8")

    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cuts = [page(file, offset, limit) for offset in range(0, len(data), limit)]

    assert b"".join(data[cut.start : cut.end] for cut in cuts) == data


@given(DATA, st.integers(0, 80), st.integers(1, 20))
def test_a_page_at_any_offset_is_whole_characters_near_the_limit(
    data: bytes, offset: int, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cut = page(file, offset, limit)

    assert max(0, min(offset, len(data)) - 3) <= cut.start <= min(offset, len(data))
    assert cut.end - cut.start <= limit + 3
    assert text(data[: cut.start]) + text(data[cut.start :]) == text(data)


def test_a_limit_smaller_than_a_character_still_gets_on(tmp_path: Path) -> None:
    with file_of(tmp_path, "红a".encode()) as file:
        first = page(file, 0, 1)
        second = page(file, first.end, 1)

    assert first == ByteRange(0, 3, done=False)
    assert second == ByteRange(3, 4, done=True)


def test_an_offset_past_the_end_is_an_empty_last_page(tmp_path: Path) -> None:
    with file_of(tmp_path, b"abc") as file:
        cut = page(file, 1000, 10)

    assert cut == ByteRange(3, 3, done=True)


def test_an_empty_file_is_done_at_once(tmp_path: Path) -> None:
    with file_of(tmp_path, b"") as file:
        cut = page(file, 0, 10)

    assert cut == ByteRange(0, 0, done=True)


def test_half_a_character_waits_for_the_rest_of_a_growing_file(tmp_path: Path) -> None:
    whole = "日志：完".encode()
    with file_of(tmp_path, whole[:-1]) as file:
        first = page(file, 0, 100)
        with (tmp_path / "file").open("ab") as writer:
            writer.write(whole[-1:])
        second = page(file, first.end, 100)

    assert first == ByteRange(0, 9, done=False)
    assert text(whole[second.start : second.end]) == "完"
    assert second.done


def test_line_ends_and_nul_are_kept_as_they_are(tmp_path: Path) -> None:
    data = b"a\r\nb\rc\x00d\n\n"
    with file_of(tmp_path, data) as file:
        cut = page(file, 0, 100)

    assert text(data[cut.start : cut.end]).encode() == data
