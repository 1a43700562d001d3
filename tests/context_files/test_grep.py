"""What a search shows: clipped lines, neighbours, true totals, and a cursor to go on."""

import os
import stat
from pathlib import Path
from time import monotonic

import pytest

from creonowd.context_files import search_engines
from creonowd.context_files.files import GrepRequest, ReadableFile, SearchTools, find_matches
from creonowd.context_files.new_file import file_stats
from creonowd.context_files.records import Kind, Origin, Record, Retention
from creonowd.context_files.search import (
    SecretLinesCache,
    VisibleMatch,
    VisibleMatches,
    parse_cursor,
    spell_cursor,
)
from creonowd.context_files.slices import Reader
from creonowd.errors import DaemonError
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.storage.safe_folder import OpenFile
from creonowd.threads import StoppedError, StopSignal
from tests.context_files.files import file_of

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
RIPGREP = search_engines.find_ripgrep()
ENGINES = [None, RIPGREP] if RIPGREP else [None]


def record_of(data: bytes) -> Record:
    return Record(
        id="ctx_00000000000000000000",
        kind=Kind.ARTIFACT,
        origin=Origin.TOOL,
        retention=Retention.EAGER,
        path="artifacts/tool/x.txt",
        hint="x",
        mime_type="text/plain",
        created_at=0,
        stored_at=0,
        sequence=0,
        project_id="prj_one",
        survey=file_stats([data]),
    )


def searched(
    tmp_path: Path,
    data: bytes,
    wanted: GrepRequest,
    program: Path | None = None,
    *,
    seconds: float = 20,
    raw: bool = False,
) -> VisibleMatches:
    with file_of(tmp_path, data) as file:
        seen = ReadableFile(record_of(data), file, StopSignal())
        reader = Reader(None if raw else Redactor(), "ctx")
        return find_matches(
            seen, wanted, reader, SearchTools(program, seconds, monotonic, SecretLinesCache())
        )


def numbered(matches: list[VisibleMatch]) -> list[tuple[int, str]]:
    return [(match.place.line, match.content) for match in matches]


@pytest.mark.parametrize("program", ENGINES)
def test_lines_come_with_number_offset_and_neighbours(tmp_path: Path, program: Path | None) -> None:
    data = b"one\r\ntwo\r\nthree\r\nfour\r\nfive"

    found = searched(tmp_path, data, GrepRequest("t", context_lines=1), program)

    first, second = found.matches
    assert first == VisibleMatch(first.place, "two", ["one"], ["three"])
    assert second == VisibleMatch(second.place, "three", ["two"], ["four"])
    assert [match.place for match in found.matches] == [(2, 5), (3, 10)]
    assert (found.total, found.complete, found.cursor) == (2, True, None)


@pytest.mark.requirement("CF-023")
@pytest.mark.parametrize("program", ENGINES)
def test_the_total_is_true_however_few_are_shown(tmp_path: Path, program: Path | None) -> None:
    data = b"".join(b"needle %d needle\n" % n for n in range(1000))

    found = searched(tmp_path, data, GrepRequest("needle", most=3), program)

    assert found.total == 1000
    assert len(found.matches) == 3


@pytest.mark.parametrize("program", ENGINES)
def test_the_cursor_goes_on_where_the_last_page_ended(tmp_path: Path, program: Path | None) -> None:
    data = b"".join(b"%d %s\n" % (n, b"needle" if n % 3 == 0 else b"") for n in range(100))
    collected: list[VisibleMatch] = []
    totals: set[int] = set()
    cursor: str | None = None
    while True:
        found = searched(tmp_path, data, GrepRequest("needle", most=7, cursor=cursor), program)
        collected += found.matches
        totals.add(found.total)
        if found.cursor is None:
            break
        cursor = spell_cursor(found.cursor)

    assert [match.place.line for match in collected] == [n + 1 for n in range(0, 100, 3)]
    assert totals == {34}


@pytest.mark.parametrize("text", ["", "x", "1-0", "0-0-0", "1-5-0", "1-99-0", "-1-0-0", "1-0-0-0"])
def test_a_cursor_of_another_file_is_refused(tmp_path: Path, text: str) -> None:
    with (
        file_of(tmp_path, b"abc\ndefgh\n") as file,
        pytest.raises(DaemonError, match="INVALID_ARGUMENT"),
    ):
        parse_cursor(text, file)


@pytest.mark.parametrize("program", ENGINES)
def test_a_long_line_is_clipped_around_its_match(tmp_path: Path, program: Path | None) -> None:
    data = "红".encode() * 5000 + b"needle" + "楼".encode() * 5000 + b"\n"

    found = searched(tmp_path, data, GrepRequest("needle"), program)

    content = found.matches[0].content
    assert "红needle楼" in content
    assert content.startswith("…红")
    assert content.endswith("楼…")
    assert len(content.encode()) <= 1024 + 6
    assert "\ufffd" not in content


def test_a_long_neighbour_is_clipped_at_its_end(tmp_path: Path) -> None:
    data = b"x" * 5000 + b"\nneedle\n" + b"y" * 100_000

    (match,) = searched(tmp_path, data, GrepRequest("needle", context_lines=2)).matches

    assert match.before == ["x" * 1024 + "…"]
    assert match.after == ["y" * 1024 + "…"]


def test_secrets_are_taken_out_of_every_line_that_is_shown(tmp_path: Path) -> None:
    data = f"key {KEY}\nneedle {KEY}\n{KEY}\n".encode()

    found = searched(tmp_path, data, GrepRequest("needle", context_lines=1))

    (match,) = found.matches
    assert match.content == f"needle {PLACEHOLDER}"
    assert match.before == [f"key {PLACEHOLDER}"]
    assert match.after == [PLACEHOLDER]
    assert [one.match_count for one in found.evidence] == [3]


def test_clipping_into_a_secret_shows_none_of_it(tmp_path: Path) -> None:
    data = f"{'x' * 3000} {KEY} needle {KEY} {'y' * 3000}".encode()

    for shift in range(0, 400, 13):
        shifted = b"z" * shift + data
        content = searched(tmp_path, shifted, GrepRequest("needle")).matches[0].content
        assert "Zq8L" not in content
        assert "Pd2X" not in content


def test_an_owner_may_search_raw(tmp_path: Path) -> None:
    found = searched(tmp_path, f"needle {KEY}\n".encode(), GrepRequest("needle"), raw=True)

    assert found.matches[0].content == f"needle {KEY}"
    assert found.evidence == ()


@pytest.mark.parametrize("program", ENGINES)
def test_case_is_ignored_unless_it_matters(tmp_path: Path, program: Path | None) -> None:
    data = "Needle\nNEEDLE\nÉté\nété\n".encode()

    ignored = searched(tmp_path, data, GrepRequest("needle|été"), program)
    exact = searched(tmp_path, data, GrepRequest("NEEDLE|été", case_sensitive=True), program)

    assert [line for line, _ in numbered(ignored.matches)] == [1, 2, 3, 4]
    assert [line for line, _ in numbered(exact.matches)] == [2, 4]


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"needle", b"\xff\xfeneedle\x00\n", b"a\0needle\0b\n", b"\r\nneedle\r\n"]
)
@pytest.mark.parametrize("program", ENGINES)
def test_odd_files_are_searched_as_they_read(
    tmp_path: Path, data: bytes, program: Path | None
) -> None:
    found = searched(tmp_path, data, GrepRequest("needle"), program, raw=True)

    lines = data.decode("utf-8", "replace").split("\n")
    expected = [(n, line.rstrip("\r")) for n, line in enumerate(lines, 1) if "needle" in line]
    assert numbered(found.matches) == expected


def fake_ripgrep(tmp_path: Path, script: str) -> Path:
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


@pytest.mark.requirement("CF-026")
@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize(
    "script", ["exit 2", "kill -9 $$", "printf '1:0:x\\n'; kill -9 $$", "exec /nonexistent"]
)
def test_a_dead_ripgrep_is_replaced_in_the_same_call(tmp_path: Path, script: str) -> None:
    program = fake_ripgrep(tmp_path, script)

    found = searched(tmp_path, b"a\nneedle\n", GrepRequest("needle"), program)

    assert numbered(found.matches) == [(2, "needle")]
    assert found.complete


@pytest.mark.requirement("CF-027")
@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_when_the_time_is_up_the_answer_says_so(tmp_path: Path) -> None:
    program = fake_ripgrep(tmp_path, "printf '1:0:x\\n'; exec sleep 60")

    found = searched(tmp_path, b"needle\nneedle\n", GrepRequest("needle"), program, seconds=0.3)

    assert numbered(found.matches) == [(1, "needle")]
    assert not found.complete


@pytest.mark.requirement("CF-027")
def test_when_the_time_is_up_our_own_scan_says_so_too(tmp_path: Path) -> None:
    found = searched(tmp_path, b"needle\n" * 9, GrepRequest("needle"), seconds=0)

    assert not found.complete
    assert found.total < 9


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_a_search_that_nobody_waits_for_stops(tmp_path: Path) -> None:
    program = fake_ripgrep(tmp_path, "exec sleep 60")
    stop = StopSignal()
    stop.tell()
    data = b"needle\n"

    with file_of(tmp_path, data) as file, pytest.raises(StoppedError):
        find_matches(
            ReadableFile(record_of(data), file, stop),
            GrepRequest("needle"),
            Reader(None),
            SearchTools(program, 60, monotonic, SecretLinesCache()),
        )


def test_a_reply_is_bounded_and_the_cursor_shows_the_rest(tmp_path: Path) -> None:
    data = (b"needle " + b"x" * 1500 + b"\n") * 300

    found = searched(tmp_path, data, GrepRequest("needle", most=200, context_lines=20))

    assert found.total == 300
    assert len(found.matches) < 200
    assert found.cursor is not None
    assert found.cursor.seen == len(found.matches)


def test_a_file_that_has_grown_is_searched_to_its_end(tmp_path: Path) -> None:
    data = b"needle\n"
    with file_of(tmp_path, data) as file:
        seen = ReadableFile(record_of(data), file, StopSignal())
        with (tmp_path / "file").open("ab") as writer:
            writer.write(b"needle again\n")
        found = find_matches(
            seen,
            GrepRequest("needle"),
            Reader(None),
            SearchTools(RIPGREP, 20, monotonic, SecretLinesCache()),
        )

    assert numbered(found.matches) == [(1, "needle"), (2, "needle again")]


class CountingFile(OpenFile):
    """An open file that remembers the longest piece that was asked of it."""

    longest = 0

    def read_at(self, offset: int, length: int) -> bytes:
        self.longest = max(self.longest, length)
        return super().read_at(offset, length)


def test_a_huge_file_is_searched_a_piece_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as writer:
        for _ in range(64):
            writer.write((b"x" * 1023 + b"\n") * 1024)
        writer.write(b"needle\n")
    with path.open("rb", buffering=0) as plain:
        file = CountingFile(plain)
        seen = ReadableFile(record_of(b""), file, StopSignal())
        found = find_matches(
            seen,
            GrepRequest("needle"),
            Reader(None),
            SearchTools(None, 60, monotonic, SecretLinesCache()),
        )

    assert numbered(found.matches) == [(64 * 1024 + 1, "needle")]
    assert file.longest <= 1024 * 1024
