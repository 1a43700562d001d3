"""ripgrep and our own scan find the same lines, and both find those that `re` would, line by line."""

import re
import tempfile
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from creonowd.context_files import patterns, search
from creonowd.context_files.folder import file_stats
from creonowd.context_files.records import FileStats
from creonowd.context_files.search import (
    FILE_START,
    Cursor,
    FoundLines,
    LineQuery,
    LineStart,
)
from creonowd.threads import StopSignal, TimeLimit
from testing.fuzz import scaled_examples
from tests.context_files.pattern_strategies import FILES, PATTERNS, Pattern
from tests.context_files.sample_files import file_of

RIPGREP = search.find_ripgrep()
FOLDING = st.text(alphabet="kK\u212asS\u017fßẞiIİıéÉσςΣ\n", max_size=30)


def query(
    pattern: str,
    *,
    known: FileStats | None = None,
    case: bool = True,
    start: Cursor = FILE_START,
    most: int = 1000,
) -> LineQuery:
    return LineQuery(
        patterns.translate(pattern, case_sensitive=case),
        known,
        start,
        most,
        TimeLimit(20, monotonic),
        StopSignal(),
    )


def by_hand(content: str, pattern: str) -> list[LineStart]:
    places: list[LineStart] = []
    offset = 0
    pieces = content.split("\n")
    for number, line in enumerate(pieces[:-1] if pieces[-1] == "" else pieces, 1):
        if re.search(pattern, line.removesuffix("\r")):
            places.append(LineStart(number, offset))
        offset += len(line.encode()) + 1
    return places


@pytest.mark.requirement("CF-025")
@pytest.mark.fuzz
@scaled_examples(3)
@given(FILES, PATTERNS)
@example("a\n\n", Pattern("^$", r"^\Z"))
@example("\r\n", Pattern("^.", r"^[^\r\n]"))
@example("a\r\nb", Pattern("a$", r"a\Z"))
def test_our_scan_finds_what_re_finds_line_by_line(content: str, pattern: Pattern) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        found = search.scan(file, query(pattern.ours))

    places = by_hand(content, pattern.python)
    assert found == FoundLines(places, len(places), complete=True)


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed; the scan is tested alone")
@pytest.mark.fuzz
@given(content=FILES, pattern=PATTERNS, case=st.booleans())
@example(content="foo贾\nfoob\n", pattern=Pattern(r"o\b", ""), case=True)
@example(content="a\r\n", pattern=Pattern(".$", ""), case=True)
@example(content="x\ry\r\n", pattern=Pattern(r"x.y|\r", ""), case=True)
@example(content="&\na\n", pattern=Pattern("[a&&b]", ""), case=True)
@example(content="\ufeffa\n", pattern=Pattern("^a", ""), case=True)
@example(content="a\0b\nc\n", pattern=Pattern(r"b|\x00", ""), case=True)
def test_ripgrep_finds_what_our_scan_finds(*, content: str, pattern: Pattern, case: bool) -> None:
    assert RIPGREP is not None
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        asked = query(pattern.ours, case=case)
        found = search.run_ripgrep(RIPGREP, file, asked)
        scanned = search.scan(file, asked)

    assert found == scanned


@pytest.mark.skipif(RIPGREP is None, reason="ripgrep is not installed; the scan is tested alone")
@scaled_examples(0.4)
@given(FOLDING, st.text(alphabet="kK\u212asS\u017fßiIéÉσΣ", min_size=1, max_size=2))
def test_the_engines_agree_on_letters_without_case(content: str, word: str) -> None:
    assert RIPGREP is not None
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        asked = query(word, case=False)
        found = search.run_ripgrep(RIPGREP, file, asked)
        scanned = search.scan(file, asked)

    assert found == scanned


@given(FILES, PATTERNS, st.integers(1, 3))
def test_going_on_from_a_cursor_misses_nothing(content: str, pattern: Pattern, most: int) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        whole = search.scan(file, query(pattern.ours))
        collected: list[LineStart] = []
        cursor: Cursor | None = FILE_START
        while cursor is not None:
            part = search.scan(file, query(pattern.ours, start=cursor, most=most + 1))
            assert len(collected) + part.total == whole.total
            collected += part.places[:most]
            rest = part.places[most:]
            cursor = Cursor(rest[0], len(collected)) if rest else None

    assert collected == whole.places


@given(
    st.lists(
        st.sampled_from([b"a", b"b", b"\xff", b"\xe4\xb8", b"\n", b"\r\n", "红".encode()]),
        max_size=30,
    )
)
def test_bytes_that_are_no_text_are_searched_as_they_read(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        found = search.scan(file, query("b|\ufffda"))

    lines = data.split(b"\n")
    numbers = [
        number
        for number, line in enumerate(lines[:-1] if lines[-1] == b"" else lines, 1)
        if re.search("b|\ufffda", line.decode("utf-8", "replace"))
    ]
    assert [place.line for place in found.places] == numbers
    assert all(place.offset == 0 or data[place.offset - 1] == 10 for place in found.places)


@pytest.mark.parametrize("counted", [True, False])
def test_line_numbers_are_right_across_mebibytes(tmp_path: Path, *, counted: bool) -> None:
    lines = [
        b"%d %s" % (i, b"x" * (i % 50)) + (b" needle" if i % 9973 == 0 else b"")
        for i in range(120_000)
    ]
    data = b"\n".join(lines)
    known = file_stats([data]) if counted else None
    with file_of(tmp_path, data) as file:
        found = search.scan(file, query("needle", known=known))

    assert [place.line for place in found.places] == [
        i + 1 for i in range(120_000) if i % 9973 == 0
    ]
    assert all(data[p.offset :].startswith(b"%d " % (p.line - 1)) for p in found.places)


def test_a_line_longer_than_the_longest_counts_once(tmp_path: Path) -> None:
    data = b"first\n" + b"needle " * 3_000_000 + b"\nneedle\n"
    with file_of(tmp_path, data) as file:
        found = search.scan(file, query("needle"))

    assert found.places == [LineStart(2, 6), LineStart(3, len(data) - 7)]
    assert found.total == 2


def test_a_dead_ripgrep_has_no_result(tmp_path: Path) -> None:
    with file_of(tmp_path, b"needle\n") as file:
        found = search.run_ripgrep(tmp_path / "no-such-program", file, query("needle"))

    assert found is None


def test_the_time_limit_ends_a_scan_with_what_was_found(tmp_path: Path) -> None:
    asked = query("needle")._replace(time_limit=TimeLimit(0, monotonic))
    with file_of(tmp_path, b"needle\n") as file:
        found = search.scan(file, asked)

    assert found == FoundLines([], 0, complete=False)


def test_a_pattern_that_is_slow_for_any_engine_keeps_to_the_time_limit(tmp_path: Path) -> None:
    """Without stretches that fit the pattern, one mebibyte of this takes most of a minute."""
    asked = query(r"(\w{1,30}\s?){30}z", case=False)._replace(time_limit=TimeLimit(0.2, monotonic))
    with file_of(tmp_path, (b"ab" * 500 + b"\n") * 1000) as file:
        found = search.scan(file, asked)

    assert asked.chunk_bytes < 10_000
    assert found == FoundLines([], 0, complete=False)


def test_the_setting_names_or_forbids_ripgrep(tmp_path: Path) -> None:
    program = tmp_path / "rg"
    program.touch()

    assert search.find_ripgrep("off") is None
    assert search.find_ripgrep(str(program)) == program
    assert search.find_ripgrep(str(tmp_path / "missing")) is None
