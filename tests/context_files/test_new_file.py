"""One pass over the bytes finds what a search needs, however they arrive."""

from hypothesis import given
from hypothesis import strategies as st

from creonowd.context_files.new_file import file_stats
from creonowd.context_files.records import BLOCK

PIECES = st.lists(st.sampled_from([b"", b"\n", b"a" * 7, "红\n".encode(), b"\xe7", b"x\r\ny"]))


@given(PIECES)
def test_statistics_are_of_the_bytes_and_not_of_their_pieces(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    whole = file_stats([data])

    piecewise = file_stats(pieces)

    assert (piecewise.sha256, piecewise.utf8) == (whole.sha256, whole.utf8)
    assert piecewise.newlines == whole.newlines
    assert sum(whole.newlines) == data.count(b"\n")
    assert whole.byte_size == len(data)


@given(PIECES)
def test_no_line_is_longer_than_the_statistics_claim(pieces: list[bytes]) -> None:
    longest = max(map(len, b"".join(pieces).split(b"\n")))

    assert longest <= file_stats(pieces).longest_line <= longest + BLOCK


def test_an_endless_line_is_measured_across_blocks() -> None:
    assert file_stats([b"\n", b"x" * BLOCK, b"x" * BLOCK, b"\n"]).longest_line == 2 * BLOCK
