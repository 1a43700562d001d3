"""Pages, tails and previews split no character and leak no secret, wherever they are cut."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.context_files.search import SecretLines
from creonowd.context_files.slices import (
    ByteRange,
    Reader,
    RedactedSlices,
    TextLength,
    count_lines,
    decode,
    fits,
    page_range,
    preview,
    read_tail,
    tail_range,
)
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.storage.safe_folder import OpenFile
from tests.context_files.sample_files import file_of

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
ENOUGH = 1 << 20
LINES = st.lists(
    st.sampled_from([b"\n", b"\r\n", b"a", "红".encode(), b"\xff", b""]), max_size=40
).map(b"".join)
KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "".join(
        f"MIIEpAIBAAKCAQEA{line:04d}Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa\n" for line in range(100)
    )
    + "-----END RSA PRIVATE KEY-----"
)
SECRETS = (
    KEY,
    "sk-proj-Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3",
    "AKIAZQ8LW2XV9RT4YB7N",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3",
    "password=hunter2Zq8",
    "密码：Zq8Lw2Xv9",
    PEM,
)
PROSE = st.sampled_from(
    [
        "贾宝玉初试云雨情。",
        "It is a truth universally acknowledged.",
        "\n",
        "\r\n",
        "，",
        '"',
        " ",
        "😀",
    ]
)
TEXTS = st.lists(st.one_of(PROSE, st.sampled_from(SECRETS)), max_size=12).map("\n".join)
REDACTOR = Redactor()
READER = Reader(REDACTOR, "ctx_test")
LIMITS = TextLength(4000, 16 * 1024)
PREVIEW_READER = Reader(Redactor(), "ctx_1")


def pages_of(file: OpenFile, limits: Iterator[int]) -> list[ByteRange]:
    cuts = [page_range(file, 0, next(limits))]
    while not cuts[-1].done:
        cuts.append(page_range(file, cuts[-1].end, next(limits)))
    return cuts


def simple_tail(data: bytes, lines: int) -> bytes:
    pieces = [piece + b"\n" for piece in data.split(b"\n")]
    pieces[-1] = pieces[-1][:-1]
    whole = [piece for piece in pieces if piece]
    return b"".join(whole[-lines:])


class CountingFile(OpenFile):
    """An open file that remembers how many bytes were asked of it."""

    asked = 0

    def read_at(self, offset: int, length: int) -> bytes:
        self.asked += length
        return super().read_at(offset, length)


def redacted_pages(file: OpenFile, limit: int, reader: Reader = READER) -> list[RedactedSlices]:
    pages: list[RedactedSlices] = []
    offset, done = 0, False
    while not done:
        cut = page_range(file, offset, limit)
        pages.append(reader.read(file, [(cut.start, cut.end)], joined=True))
        offset, done = cut.end, cut.done
    return pages


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
    assert "".join(decode(data[cut.start : cut.end]) for cut in cuts) == decode(data)
    assert all(cut.end > cut.start for cut in cuts[:-1])


@given(DATA, st.integers(4, 20))
def test_a_client_that_adds_the_limit_to_the_offset_misses_nothing(data: bytes, limit: int) -> None:
    """Both ends snap the same way, so `nextOffset` may be ignored when the file is text."""
    data = decode(data).encode("utf-8")

    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cuts = [page_range(file, offset, limit) for offset in range(0, len(data), limit)]

    assert b"".join(data[cut.start : cut.end] for cut in cuts) == data


@given(DATA, st.integers(0, 80), st.integers(1, 20))
def test_a_page_at_any_offset_is_whole_characters_near_the_limit(
    data: bytes, offset: int, limit: int
) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cut = page_range(file, offset, limit)

    assert max(0, min(offset, len(data)) - 3) <= cut.start <= min(offset, len(data))
    assert cut.end - cut.start <= limit + 3
    assert decode(data[: cut.start]) + decode(data[cut.start :]) == decode(data)


def test_a_limit_smaller_than_a_character_still_gets_on(tmp_path: Path) -> None:
    with file_of(tmp_path, "红a".encode()) as file:
        first = page_range(file, 0, 1)
        second = page_range(file, first.end, 1)

    assert first == ByteRange(0, 3, done=False)
    assert second == ByteRange(3, 4, done=True)


def test_an_offset_past_the_end_is_an_empty_last_page(tmp_path: Path) -> None:
    with file_of(tmp_path, b"abc") as file:
        cut = page_range(file, 1000, 10)

    assert cut == ByteRange(3, 3, done=True)


def test_an_empty_file_is_done_at_once(tmp_path: Path) -> None:
    with file_of(tmp_path, b"") as file:
        cut = page_range(file, 0, 10)

    assert cut == ByteRange(0, 0, done=True)


def test_half_a_character_waits_for_the_rest_of_a_growing_file(tmp_path: Path) -> None:
    whole = "日志：完".encode()
    with file_of(tmp_path, whole[:-1]) as file:
        first = page_range(file, 0, 100)
        with (tmp_path / "file").open("ab") as writer:
            writer.write(whole[-1:])
        second = page_range(file, first.end, 100)

    assert first == ByteRange(0, 9, done=False)
    assert decode(whole[second.start : second.end]) == "完"
    assert second.done


def test_line_ends_and_nul_are_kept_as_they_are(tmp_path: Path) -> None:
    data = b"a\r\nb\rc\x00d\n\n"
    with file_of(tmp_path, data) as file:
        cut = page_range(file, 0, 100)

    assert decode(data[cut.start : cut.end]).encode() == data


@given(LINES, st.integers(1, 10))
def test_tail_gives_the_last_lines(data: bytes, lines: int) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cut = tail_range(file, lines, ENOUGH)

    assert data[cut.start : cut.end] == simple_tail(data, lines)
    assert count_lines(data[cut.start : cut.end]) <= lines


@pytest.mark.requirement("CF-025")
@settings(max_examples=25)
@given(LINES, st.integers(1, 10))
def test_tail_agrees_with_the_system_tail(data: bytes, lines: int) -> None:
    """Without a `tail` on this machine the reference above stands in for it."""
    program = shutil.which("tail")
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), data) as file:
        cut = tail_range(file, lines, ENOUGH)
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
        cut = tail_range(file, 2000, ENOUGH)

    assert data[cut.start :] == simple_tail(data, 2000)


def test_a_last_line_without_a_newline_is_a_line(tmp_path: Path) -> None:
    with file_of(tmp_path, b"one\ntwo\nthree") as file:
        cut = tail_range(file, 2, ENOUGH)

    assert cut == ByteRange(4, 13, done=True)


def test_one_endless_line_is_cut_at_a_character(tmp_path: Path) -> None:
    data = "红".encode() * 1000
    with file_of(tmp_path, data) as file:
        cut = tail_range(file, 5, 100)

    assert not cut.done
    assert data[cut.start :].decode("utf-8") == "红" * 34


def test_only_the_end_of_a_huge_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 30)
        file.seek(0, 2)
        file.write(b"\n" + b"last line\n" * 300)

    with path.open("rb", buffering=0) as plain:
        counting = CountingFile(plain)
        cut = tail_range(counting, 200, ENOUGH)

    assert cut.end - cut.start == 2000
    assert counting.asked < 200_000


@pytest.mark.requirement("CF-044")
@settings(max_examples=60)
@given(TEXTS, st.integers(1, 400))
def test_redacted_pages_joined_are_the_redacted_file(content: str, limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        pages = redacted_pages(file, max(limit, len(content.encode()) // 40))

    assert "".join(one.texts[0] for one in pages) == REDACTOR.redact(content).text


@given(st.integers(0, 120), st.integers(1, 60))
def test_no_page_at_any_offset_shows_a_piece_of_a_secret(offset: int, limit: int) -> None:
    content = f"前文前文前文 {KEY} 后文后文后文"
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        cut = page_range(file, offset, limit)
        shown = READER.read(file, [(cut.start, cut.end)]).texts[0]

    pieces = {KEY[at : at + 4] for at in range(len(KEY) - 3)}
    assert not any(piece in shown for piece in pieces)


def test_a_line_in_the_middle_of_a_key_block_is_redacted(tmp_path: Path) -> None:
    content = f"before\n{PEM}\nafter\n"
    middle = content.index("MIIEpAIBAAKCAQEA0090")
    with file_of(tmp_path, content.encode()) as file:
        clean = READER.read(file, [(middle, middle + 40)])

    assert clean.texts == [PLACEHOLDER]


def test_a_secret_in_one_endless_line_is_redacted(tmp_path: Path) -> None:
    content = "x " * 40_000 + KEY + " y" * 40_000
    start = content.index(KEY) + 10
    with file_of(tmp_path, content.encode()) as file:
        clean = READER.read(file, [(start, start + 10)], joined=True)

    assert clean.texts == [""]
    assert [one.match_count for one in clean.evidence] == [1]


def test_evidence_is_of_what_was_shown_and_never_of_what_lies_around(tmp_path: Path) -> None:
    content = f"{KEY}\nplain line\n{KEY}\n"
    plain = content.index("plain")
    with file_of(tmp_path, content.encode()) as file:
        clean = READER.read(file, [(plain, plain + 5)])

    assert clean == RedactedSlices(["plain"], ())


def test_evidence_names_pattern_source_and_count_but_no_value(tmp_path: Path) -> None:
    with file_of(tmp_path, f"{KEY} and {KEY}".encode()) as file:
        clean = READER.read(file, [(0, file.size)])

    (evidence,) = clean.evidence
    assert evidence.pattern_id.startswith("github_token")
    assert evidence.source_ref == "ctx_test"
    assert evidence.match_count == 2


def test_slices_that_overlap_are_each_shown(tmp_path: Path) -> None:
    with file_of(tmp_path, b"one\ntwo\nthree\n") as file:
        clean = READER.read(file, [(0, 7), (4, 13), (4, 7)])

    assert clean.texts == ["one\ntwo", "two\nthree", "two"]


def test_a_raw_reader_takes_nothing_out(tmp_path: Path) -> None:
    with file_of(tmp_path, KEY.encode()) as file:
        clean = Reader(None).read(file, [(0, file.size)])

    assert clean == RedactedSlices([KEY], ())


@settings(max_examples=20)
@given(st.binary(max_size=200), st.integers(1, 50))
def test_bytes_that_are_no_text_are_paged_as_they_read(data: bytes, limit: int) -> None:
    content = data + KEY.encode() + data
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content) as file:
        shown = "".join(one.texts[0] for one in redacted_pages(file, limit))

    assert shown == REDACTOR.redact(content.decode("utf-8", "replace")).text


@pytest.mark.requirement("CF-033")
@pytest.mark.parametrize(
    ("content", "whole"),
    [
        ("x" * 4000, True),
        ("x" * 4001, False),
        ("红" * 4000, True),
        ("😀" * 4000, True),
        ("😀" * 4000 + "红" * 400, False),
        ("", True),
    ],
)
def test_a_text_stands_whole_up_to_both_limits(content: str, *, whole: bool) -> None:
    assert fits(content, LIMITS) is whole


@pytest.mark.requirement("CF-033")
def test_bytes_may_be_what_is_too_much() -> None:
    assert not fits("😀" * 4000, TextLength(4000, 15_999))


@pytest.mark.requirement("CF-034")
@settings(max_examples=50)
@given(st.sampled_from(["x", "红楼", "😀👍", "line\r\n", "é\n"]), st.integers(4001, 40_000))
def test_a_preview_holds_both_ends_within_the_limits(piece: str, characters: int) -> None:
    content = "HEAD" + (piece * characters)[:characters] + "TAIL"
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        result = preview(file, "ctx_1", LIMITS, PREVIEW_READER, len(content))

    head, _, rest = result.text.partition("\n[… ")
    _, _, tail = rest.partition(" …]\n")
    assert content.startswith(head)
    assert content.endswith(tail)
    assert len(result.text) <= LIMITS.characters
    assert len(result.text.encode()) <= LIMITS.bytes
    assert result.missing_characters == len(content) - len(head) - len(tail)
    assert result.missing_bytes == len(content.encode()) - len(head.encode()) - len(tail.encode())
    assert f"{result.missing_bytes} bytes" in rest
    assert "ctx_1" in rest


def test_a_preview_shows_no_secret_even_where_it_cuts_one(tmp_path: Path) -> None:
    key = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
    content = f"{key} " * 500
    with file_of(tmp_path, content.encode()) as file:
        result = preview(file, "ctx_1", LIMITS, PREVIEW_READER, len(content))

    assert "Zq8L" not in result.text
    assert PLACEHOLDER in result.text
    assert result.evidence


def test_placeholders_longer_than_their_secrets_do_not_burst_the_limit(tmp_path: Path) -> None:
    content = "密码：Zq8Lw2\n" * 3000
    with file_of(tmp_path, content.encode()) as file:
        result = preview(file, "ctx_1", LIMITS, PREVIEW_READER, len(content))

    assert "Zq8Lw2" not in result.text
    assert result.text.count("密码") > 50
    assert len(result.text) <= LIMITS.characters


def test_a_stray_byte_in_a_log_costs_one_character_of_its_preview(tmp_path: Path) -> None:
    data = b"HEAD \xff " + "红".encode() * 5000 + b" \xe7\xba TAIL"
    content = data.decode("utf-8", "replace")
    with file_of(tmp_path, data) as file:
        result = preview(file, "ctx_1", LIMITS, PREVIEW_READER, len(content))

    head, _, rest = result.text.partition("\n[… ")
    _, _, tail = rest.partition(" …]\n")
    assert head.startswith("HEAD \ufffd 红")
    assert tail.endswith("红 \ufffd TAIL")
    assert result.missing_characters == len(content) - len(head) - len(tail)
    assert result.missing_bytes == 3 * result.missing_characters


def big_key(stray: bytes, end: bytes = b"-----END RSA PRIVATE KEY-----\n") -> bytes:
    """Make a key block of 97 KB with something stray in its middle, between lines of prose."""
    lines = [
        f"MIIEpAIBAAKCAQEA{line:04d}Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2XaQw5Er\n".encode()
        for line in range(1560)
    ]
    middle = len(lines) // 2
    lines[middle] = lines[middle][:30] + stray + lines[middle][30:]
    body = b"".join(lines)
    return b"before\n-----BEGIN RSA PRIVATE KEY-----\n" + body + end + b"It rained all night.\n"


@pytest.mark.parametrize("end", [b"-----END RSA PRIVATE KEY-----\n", b"\n"], ids=["ended", "cut"])
@pytest.mark.parametrize(
    "stray",
    [b"", b"\xff", "—".encode(), b"*", b"-", b"----", b" ", b"\0", "钥".encode(), b"\r\r\n"],
    ids=repr,
)
def test_no_line_of_a_big_key_is_shown_wherever_it_is_cut(
    tmp_path: Path, stray: bytes, end: bytes
) -> None:
    data = big_key(stray, end)

    with file_of(tmp_path, data) as file:
        shown = [
            "".join(READER.read(file, [(start, start + 1500)]).texts)
            for start in range(0, len(data), 4096)
        ]
        tail = "".join(READER.read(file, [(len(data) - 60_000, len(data))]).texts)
        pages = "".join(text for page in redacted_pages(file, 8192) for text in page.texts)

    assert [text for text in (*shown, tail, pages) if "Lw2Xv9Rt4" in text] == []
    assert pages.startswith("before\n")
    assert pages.endswith("It rained all night.\n")


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        (b"      ", b""),
        (b"\t\t", b"\r"),
        (b"    > ", b""),
        (b"    # ", b""),
        (b"      * ", b""),
        (b'    "', b'\\n",'),
    ],
    ids=repr,
)
def test_no_line_of_a_big_key_is_shown_whatever_its_lines_begin_with(
    tmp_path: Path, before: bytes, behind: bytes
) -> None:
    lines = big_key(b"").splitlines()
    data = b"".join(before + line + behind + b"\n" for line in lines)

    with file_of(tmp_path, data) as file:
        shown = [
            "".join(READER.read(file, [(start, start + 1500)]).texts)
            for start in range(0, len(data), 4096)
        ]
        tail = "".join(READER.read(file, [(len(data) - 60_000, len(data))]).texts)

    assert [text for text in (*shown, tail) if "Lw2Xv9Rt4" in text] == []


def is_shown(tmp_path: Path, data: bytes, part: str) -> list[str]:
    """List the pages, tails and excerpts of searches that show a part of a key."""
    with file_of(tmp_path, data) as file:
        size = len(data)
        pages = [
            "".join(READER.read(file, [(at, min(size, at + 2048))], joined=True).texts)
            for at in range(0, size, max(512, size // 50))
        ]
        tails = [read_tail(file, lines, READER).content for lines in (5, 20, 300)]
        lines = [at for at in range(size) if data[at - 1 : at] == b"\n"]
        secret_lines = SecretLines(REDACTOR)
        excerpts = [
            data[at : data.find(b"\n", at)].decode()
            for at in lines
            if part.encode() in data[at : data.find(b"\n", at)]
            and not secret_lines.has_secret(file, at)
        ]
    return [text for text in (*pages, *tails, *excerpts) if part in text]


@pytest.mark.parametrize("count", [26, 1500])
def test_no_line_of_a_putty_key_is_shown_wherever_it_is_cut(tmp_path: Path, count: int) -> None:
    lines = [
        f"MIIEpAIBAAKCAQEA{n:04d}Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2XaQw5Er" for n in range(count)
    ]
    head = ["PuTTY-User-Key-File-3: ssh-rsa", "Encryption: none", f"Private-Lines: {count}"]
    text = "\n".join(["x"] * 4096 + head + [*lines, "Zq8Lw2X=", "Private-MAC: 0123", "rain", ""])

    assert is_shown(tmp_path, text.encode(), "Zq8Lw2X") == []


@pytest.mark.parametrize(
    ("before", "behind"),
    [
        ("2024-01-01 10:00:00 app[1]: ", ""),
        ("2024-01-01 INFO ", ""),
        ("web_1  | ", ""),
        ("key.txt:12:", ""),
        ('{"time": "2024-01-01T10:00:00Z", "message": "', '", "level": "info"}'),
    ],
    ids=repr,
)
@pytest.mark.parametrize("count", [46, 1560, 2000])
def test_no_line_of_a_key_in_a_log_is_shown_wherever_it_is_cut(
    tmp_path: Path, before: str, behind: str, count: int
) -> None:
    body = [
        f"MIIEpAIBAAKCAQEA{n:04d}Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2XaQw5Er" for n in range(count)
    ]
    key = ["-----BEGIN PRIVATE KEY-----", *body, "Zq8Lw2X=", "-----END PRIVATE KEY-----"]
    prefixed = [f"{before}{line}{behind}" for line in key]
    text = "\n".join(["x"] * 3000 + prefixed + ["It rained all night.", ""])

    assert is_shown(tmp_path, text.encode(), "Zq8Lw2X") == []


@pytest.mark.parametrize("count", [100, 1560])
@pytest.mark.parametrize(
    ("first", "stray", "last"),
    [
        ("-----BEGIN PRIVATE KEY-----", "-----END CERTIFICATE-----", "-----END PRIVATE KEY-----"),
        ("-----begin private key-----", "Zq8Lw2X=", "-----end private key-----"),
        ("-----Begin RSA Private Key-----", "-----end certificate-----", "It rained."),
    ],
    ids=repr,
)
def test_no_line_of_a_key_is_shown_whatever_case_and_ends_it_has(
    tmp_path: Path, first: str, stray: str, last: str, count: int
) -> None:
    body = [
        f"MIIEpAIBAAKCAQEA{n:04d}Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2XaQw5Er" for n in range(count)
    ]
    body.insert(30, stray)
    text = "\n".join([*["x"] * 3000, first, *body, last, "It rained all night.", ""])

    assert is_shown(tmp_path, text.encode(), "Zq8Lw2X") == []


ROWS = {
    "csv": ("user,password,note\n", "u{n},Zq8Lw{n}x,a note\n"),
    "tsv": ("user\tpassword\n", "u{n}\tZq8Lw{n}x\n"),
    "markdown": ("| user | 密码 |\n|---|---|\n", "| u{n} | Zq8Lw{n}x |\n"),
    "quoted": ('"name";"api key"\r\n', '"u{n}";"Zq8Lw2Xv9Rt4Yb7N{n}"\r\n'),
}


@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize("before", ["", "It rained all night.\n\n"])
def test_a_row_far_below_its_header_is_redacted_by_it(
    tmp_path: Path, form: str, before: str
) -> None:
    header, row = ROWS[form]
    text = before + header + "".join(row.format(n=n) for n in range(16_000))
    data = text.encode()
    places = [2000, 70_000, 140_000, len(data) - 3000]

    with file_of(tmp_path, data) as file:
        shown = READER.read(file, [(place, place + 900) for place in places]).texts

    assert [one.count("Zq8Lw") for one in shown] == [0] * len(places)
    assert all("u" in one for one in shown)


def test_rows_of_another_table_are_not_redacted_by_a_header_far_above(tmp_path: Path) -> None:
    rows = "".join(f"name{n},harbour{n}x\n" for n in range(9000))
    data = f"user,password\nbo,Zq8Lw2Xv\n\nIt rained.\n\nship,port\n{rows}".encode()

    with file_of(tmp_path, data) as file:
        (shown,) = READER.read(file, [(100_000, 100_400)]).texts

    assert shown == data[100_000:100_400].decode()
