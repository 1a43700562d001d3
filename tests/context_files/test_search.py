"""What a search shows: clipped lines, neighbours, true totals, a cursor, and nothing of a secret."""

import os
import stat
from pathlib import Path
from time import monotonic

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from creonowd.context_files.folder import file_stats
from creonowd.context_files.patterns import compile_translated, translate
from creonowd.context_files.search import (
    GrepRequest,
    SearchTools,
    SecretLines,
    SecretLinesCache,
    VisibleMatch,
    VisibleMatches,
    find_matches,
    find_ripgrep,
    matches_outside_secrets,
    parse_cursor,
    spell_cursor,
)
from creonowd.context_files.slices import Reader
from creonowd.errors import DaemonError
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.storage.safe_folder import OpenFile
from creonowd.threads import StoppedError, StopSignal, TimeLimit
from tests.context_files.sample_files import file_of

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
REDACTOR = Redactor()
RIPGREP = find_ripgrep()
ENGINES = [None, RIPGREP] if RIPGREP else [None]
SECRET_DIGITS = st.text("0123456789abcdef", min_size=40, max_size=40)
LINES = st.sampled_from(
    [
        "token=ghp_{}",
        "GET /v1?token=ghp_{} 200 OK",
        "ghp_{}",
        "用 ghp_{} 登录，两次",
        "no secret here",
        "error: token=ghp_{} refused",
        "",
    ]
)
PATTERNS = st.sampled_from(
    [
        "ghp_{}",
        "token=ghp_[{}]",
        "token=ghp_[^{}]",
        "ghp_{}|REDACTED",
        r"ghp_\w*{}$",
        r"=\b.*{}",
        "{}",
        r"token=(?:ghp_{}|\*\*\*REDACTED\*\*\*)",
        "200|ghp_{}",
        "^[^{}]*$",
        "error.*",
        "登录",
        r"\bghp_{}\w*\b",
        ".",
        "",
    ]
)


def tools(
    program: Path | None, *, seconds: float = 20, stop: StopSignal | None = None
) -> SearchTools:
    time_limit = TimeLimit(seconds, monotonic)
    return SearchTools(program, SecretLinesCache(), time_limit, stop or StopSignal())


def search(
    tmp_path: Path,
    data: bytes,
    request: GrepRequest,
    program: Path | None = None,
    *,
    seconds: float = 20,
    raw: bool = False,
) -> VisibleMatches:
    with file_of(tmp_path, data) as file:
        reader = Reader(None if raw else Redactor(), "ctx")
        stats = file_stats([data])
        return find_matches(file, stats, request, reader, tools(program, seconds=seconds))


def numbered(matches: list[VisibleMatch]) -> list[tuple[int, str]]:
    return [(match.place.line, match.content) for match in matches]


def fake_ripgrep(tmp_path: Path, script: str) -> Path:
    program = tmp_path / "rg"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return program


class CountingFile(OpenFile):
    """An open file that remembers the longest piece that was asked of it."""

    longest = 0

    def read_at(self, offset: int, length: int) -> bytes:
        self.longest = max(self.longest, length)
        return super().read_at(offset, length)


def outcome(matches: VisibleMatches) -> tuple[list[tuple[int, str]], int, bool]:
    return numbered(matches.matches), matches.total, matches.cursor is None


def starts(data: bytes) -> list[int]:
    offsets = [0]
    for line in data.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets[:-1]


@pytest.mark.parametrize("program", ENGINES)
def test_lines_come_with_number_offset_and_neighbours(tmp_path: Path, program: Path | None) -> None:
    data = b"one\r\ntwo\r\nthree\r\nfour\r\nfive"

    found = search(tmp_path, data, GrepRequest("t", context_lines=1), program)

    first, second = found.matches
    assert first == VisibleMatch(first.place, "two", ["one"], ["three"])
    assert second == VisibleMatch(second.place, "three", ["two"], ["four"])
    assert [match.place for match in found.matches] == [(2, 5), (3, 10)]
    assert (found.total, found.complete, found.cursor) == (2, True, None)


@pytest.mark.requirement("CF-023")
@pytest.mark.parametrize("program", ENGINES)
def test_the_total_is_true_however_few_are_shown(tmp_path: Path, program: Path | None) -> None:
    data = b"".join(b"needle %d needle\n" % n for n in range(1000))

    found = search(tmp_path, data, GrepRequest("needle", max_results=3), program)

    assert found.total == 1000
    assert len(found.matches) == 3


@pytest.mark.parametrize("program", ENGINES)
def test_the_cursor_goes_on_where_the_last_page_ended(tmp_path: Path, program: Path | None) -> None:
    data = b"".join(b"%d %s\n" % (n, b"needle" if n % 3 == 0 else b"") for n in range(100))
    collected: list[VisibleMatch] = []
    totals: set[int] = set()
    cursor: str | None = None
    while True:
        found = search(tmp_path, data, GrepRequest("needle", max_results=7, cursor=cursor), program)
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

    found = search(tmp_path, data, GrepRequest("needle"), program)

    content = found.matches[0].content
    assert "红needle楼" in content
    assert content.startswith("…红")
    assert content.endswith("楼…")
    assert len(content.encode()) <= 1024 + 6
    assert "\ufffd" not in content


def test_a_long_neighbour_is_clipped_at_its_end(tmp_path: Path) -> None:
    data = b"x" * 5000 + b"\nneedle\n" + b"y" * 100_000

    (match,) = search(tmp_path, data, GrepRequest("needle", context_lines=2)).matches

    assert match.before == ["x" * 1024 + "…"]
    assert match.after == ["y" * 1024 + "…"]


def test_secrets_are_taken_out_of_every_line_that_is_shown(tmp_path: Path) -> None:
    data = f"key {KEY}\nneedle {KEY}\n{KEY}\n".encode()

    found = search(tmp_path, data, GrepRequest("needle", context_lines=1))

    (match,) = found.matches
    assert match.content == f"needle {PLACEHOLDER}"
    assert match.before == [f"key {PLACEHOLDER}"]
    assert match.after == [PLACEHOLDER]
    assert [one.match_count for one in found.evidence] == [3]


def test_clipping_into_a_secret_shows_none_of_it(tmp_path: Path) -> None:
    data = f"{'x' * 3000} {KEY} needle {KEY} {'y' * 3000}".encode()

    for shift in range(0, 400, 13):
        shifted = b"z" * shift + data
        content = search(tmp_path, shifted, GrepRequest("needle")).matches[0].content
        assert "Zq8L" not in content
        assert "Pd2X" not in content


def test_an_owner_may_search_raw(tmp_path: Path) -> None:
    found = search(tmp_path, f"needle {KEY}\n".encode(), GrepRequest("needle"), raw=True)

    assert found.matches[0].content == f"needle {KEY}"
    assert found.evidence == ()


@pytest.mark.parametrize("program", ENGINES)
def test_case_is_ignored_unless_it_matters(tmp_path: Path, program: Path | None) -> None:
    data = "Needle\nNEEDLE\nÉté\nété\n".encode()

    ignored = search(tmp_path, data, GrepRequest("needle|été"), program)
    exact = search(tmp_path, data, GrepRequest("NEEDLE|été", case_sensitive=True), program)

    assert [line for line, _ in numbered(ignored.matches)] == [1, 2, 3, 4]
    assert [line for line, _ in numbered(exact.matches)] == [2, 4]


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"needle", b"\xff\xfeneedle\x00\n", b"a\0needle\0b\n", b"\r\nneedle\r\n"]
)
@pytest.mark.parametrize("program", ENGINES)
def test_odd_files_are_searched_as_they_read(
    tmp_path: Path, data: bytes, program: Path | None
) -> None:
    found = search(tmp_path, data, GrepRequest("needle"), program, raw=True)

    lines = data.decode("utf-8", "replace").split("\n")
    expected = [(n, line.rstrip("\r")) for n, line in enumerate(lines, 1) if "needle" in line]
    assert numbered(found.matches) == expected


@pytest.mark.requirement("CF-026")
@pytest.mark.skipif(os.name == "nt", reason="the stand-ins are shell scripts")
@pytest.mark.parametrize(
    "script", ["exit 2", "kill -9 $$", "printf '1:0:x\\n'; kill -9 $$", "exec /nonexistent"]
)
def test_a_dead_ripgrep_is_replaced_in_the_same_call(tmp_path: Path, script: str) -> None:
    program = fake_ripgrep(tmp_path, script)

    found = search(tmp_path, b"a\nneedle\n", GrepRequest("needle"), program)

    assert numbered(found.matches) == [(2, "needle")]
    assert found.complete


@pytest.mark.requirement("CF-027")
@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_when_the_time_is_up_the_answer_says_so(tmp_path: Path) -> None:
    program = fake_ripgrep(tmp_path, "printf '1:0:x\\n'; exec sleep 60")

    found = search(tmp_path, b"needle\nneedle\n", GrepRequest("needle"), program, seconds=0.3)

    assert numbered(found.matches) == [(1, "needle")]
    assert not found.complete


@pytest.mark.requirement("CF-027")
def test_when_the_time_is_up_our_own_scan_says_so_too(tmp_path: Path) -> None:
    found = search(tmp_path, b"needle\n" * 9, GrepRequest("needle"), seconds=0)

    assert not found.complete
    assert found.total < 9


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a shell script")
def test_a_search_that_nobody_waits_for_stops(tmp_path: Path) -> None:
    program = fake_ripgrep(tmp_path, "exec sleep 60")
    stop = StopSignal()
    stop.set()
    data = b"needle\n"

    with file_of(tmp_path, data) as file, pytest.raises(StoppedError):
        find_matches(
            file,
            file_stats([data]),
            GrepRequest("needle"),
            Reader(None),
            tools(program, seconds=60, stop=stop),
        )


def test_a_reply_is_bounded_and_the_cursor_shows_the_rest(tmp_path: Path) -> None:
    data = (b"needle " + b"x" * 1500 + b"\n") * 300

    found = search(tmp_path, data, GrepRequest("needle", max_results=200, context_lines=20))

    assert found.total == 300
    assert len(found.matches) < 200
    assert found.cursor is not None
    assert found.cursor.matches_before == len(found.matches)


def test_a_file_that_has_grown_is_searched_to_its_end(tmp_path: Path) -> None:
    data = b"needle\n"
    with file_of(tmp_path, data) as file:
        with (tmp_path / "file").open("ab") as writer:
            writer.write(b"needle again\n")
        found = find_matches(
            file, file_stats([data]), GrepRequest("needle"), Reader(None), tools(RIPGREP)
        )

    assert numbered(found.matches) == [(1, "needle"), (2, "needle again")]


def test_a_huge_file_is_searched_a_piece_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with path.open("wb") as writer:
        for _ in range(64):
            writer.write((b"x" * 1023 + b"\n") * 1024)
        writer.write(b"needle\n")
    with path.open("rb", buffering=0) as plain:
        file = CountingFile(plain)
        found = find_matches(
            file, None, GrepRequest("needle"), Reader(None), tools(None, seconds=60)
        )

    assert numbered(found.matches) == [(64 * 1024 + 1, "needle")]
    assert file.longest <= 1024 * 1024


@pytest.mark.requirement("CF-045")
@pytest.mark.parametrize("program", ENGINES)
@settings(max_examples=150)
@given(
    lines=st.lists(LINES, min_size=1, max_size=6),
    secrets=st.tuples(SECRET_DIGITS, SECRET_DIGITS),
    guess=st.tuples(PATTERNS, st.integers(0, 38), st.integers(1, 4)),
)
def test_two_secrets_that_look_the_same_are_searched_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    program: Path | None,
    lines: list[str],
    secrets: tuple[str, str],
    guess: tuple[str, int, int],
) -> None:
    """Whoever guesses a piece of the first one right sees what whoever guesses wrong sees."""
    pattern, start, length = guess
    sought = pattern.replace("{}", secrets[0][start : start + length])
    texts = ["\n".join(lines).replace("{}", secret) + "\n" for secret in secrets]
    assume(sought and REDACTOR.redact(texts[0]).text == REDACTOR.redact(texts[1]).text)
    assume(not any(secret in REDACTOR.redact(texts[0]).text for secret in secrets))
    place = tmp_path_factory.mktemp("searched")

    right, wrong = (search(place, text.encode(), GrepRequest(sought), program) for text in texts)

    assert outcome(right) == outcome(wrong)


@pytest.mark.parametrize("program", ENGINES)
def test_a_line_is_found_by_what_stands_beside_its_secret(
    tmp_path: Path, program: Path | None
) -> None:
    data = f"open /home/li/a.md: refused\ntoken=ghp_{'a1' * 20} refused\nfine\n".encode()

    found = search(tmp_path, data, GrepRequest("REFUSED|open.*"), program)

    assert found.total == 2
    assert numbered(found.matches) == [
        (1, f"open {PLACEHOLDER}: refused"),
        (2, f"token={PLACEHOLDER} refused"),
    ]


@pytest.mark.parametrize("program", ENGINES)
def test_what_is_found_in_secrets_alone_is_not_counted(
    tmp_path: Path, program: Path | None
) -> None:
    data = "".join(f"token=ghp_{n:02}{'b7' * 19}\n" for n in range(60)).encode()

    found = search(tmp_path, data, GrepRequest("ghp_"), program)

    assert (found.matches, found.total, found.cursor) == ([], 0, None)
    assert search(tmp_path, data, GrepRequest("ghp_"), program, raw=True).total == 60


def test_a_long_line_is_not_clipped_around_a_guess(tmp_path: Path) -> None:
    """Where the line is cut would reveal where in it the guess was right."""
    line = f"{'word ' * 400}token=ghp_{'c3' * 20} {'tail ' * 400}\n".encode()

    right = search(tmp_path, line, GrepRequest("ghp_c3|tail"))
    wrong = search(tmp_path, line, GrepRequest("ghp_d4|tail"))

    assert outcome(right) == outcome(wrong)


@pytest.mark.parametrize(
    ("pattern", "line", "found"),
    [
        ("open", f"open {PLACEHOLDER}", True),
        ("open .", f"open {PLACEHOLDER}", False),
        (r"open\b", f"open{PLACEHOLDER}", False),
        ("end$", f"{PLACEHOLDER} end", True),
        ("^open", f"open {PLACEHOLDER} end", True),
        ("open.*end", f"open {PLACEHOLDER} end", False),
        ("open.*", f"open {PLACEHOLDER} end", True),
        ("REDACTED", f"open {PLACEHOLDER} end", False),
        ("a|$", PLACEHOLDER, False),
        ("x*", f"{PLACEHOLDER} end", True),
    ],
)
def test_only_a_match_away_from_secrets_counts(pattern: str, line: str, *, found: bool) -> None:
    regex = compile_translated(translate(pattern, case_sensitive=True))

    assert matches_outside_secrets(regex, line.encode()) is found


@given(
    st.lists(st.sampled_from([f"a {KEY} b", "plain", "密码在别处", "x" * 300, ""]), max_size=40),
    st.sampled_from([16, 64, 1024]),
)
def test_the_secret_lines_are_found_whatever_the_blocks(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block: int
) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()

    with file_of(tmp_path_factory.mktemp("secrets"), data) as file:
        secret_lines = SecretLines(REDACTOR, block)
        hidden = [secret_lines.has_secret(file, start) for start in starts(data)]

    assert hidden == [KEY in line for line in lines]


def test_a_secret_over_several_lines_hides_them_all(tmp_path: Path) -> None:
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" for _ in range(5))
    data = (
        f"before\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nafter\n".encode()
    )

    with file_of(tmp_path, data) as file:
        secret_lines = SecretLines(REDACTOR)
        hidden = [secret_lines.has_secret(file, start) for start in starts(data)]

    assert hidden == [False, *[True] * 7, False]


def test_a_file_with_other_bytes_or_for_other_eyes_is_looked_at_anew() -> None:
    known = SecretLinesCache()
    first = known.lines_of(file_stats([b"plain\n"]), REDACTOR)

    assert known.lines_of(file_stats([b"plain\n"]), REDACTOR) is first
    assert known.lines_of(file_stats([b"other\n"]), REDACTOR) is not first
    assert known.lines_of(file_stats([b"plain\n"]), REDACTOR.sensitive()) is not first
    assert known.lines_of(None, REDACTOR) is not known.lines_of(None, REDACTOR)


def test_only_the_last_files_are_remembered() -> None:
    known = SecretLinesCache(capacity=2)
    first = known.lines_of(file_stats([b"0"]), REDACTOR)
    for data in (b"1", b"2"):
        known.lines_of(file_stats([data]), REDACTOR)

    assert known.lines_of(file_stats([b"0"]), REDACTOR) is not first


def test_a_search_in_the_middle_of_a_big_key_finds_nothing(tmp_path: Path) -> None:
    """97 KB of key, and a stray byte in it: neither the match nor its neighbours are shown."""
    lines = [
        f"MIIEpAIBAAKCAQEA{n:04d}Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2XaQw5Er" for n in range(1560)
    ]
    lines[900] = lines[900].replace("Zq8", "Z—q8")
    text = "\n".join(
        ["before", "-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----", "rain"]
    )

    found = [
        search(tmp_path, text.encode(), GrepRequest(pattern, context_lines=2)).matches
        for pattern in ("AQEA1200", "AQEA0900", "Lw2Xv9", "rain")
    ]

    assert [len(matches) for matches in found] == [0, 0, 0, 1]
    assert "Lw2Xv9" not in str(found)
