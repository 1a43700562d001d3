"""A secret that a cut goes through leaks from neither side, and pages still join up."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.context_files.slices import Reader, RedactedSlices, page
from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.storage.safe_folder import OpenFile
from tests.context_files.files import file_of

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


def pages_of(file: OpenFile, limit: int, reader: Reader = READER) -> list[RedactedSlices]:
    pages: list[RedactedSlices] = []
    offset, done = 0, False
    while not done:
        cut = page(file, offset, limit)
        pages.append(reader.read(file, [(cut.start, cut.end)], joined=True))
        offset, done = cut.end, cut.done
    return pages


@pytest.mark.requirement("CF-044")
@settings(max_examples=60)
@given(TEXTS, st.integers(1, 400))
def test_redacted_pages_joined_are_the_redacted_file(content: str, limit: int) -> None:
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        pages = pages_of(file, max(limit, len(content.encode()) // 40))

    assert "".join(one.texts[0] for one in pages) == REDACTOR.redact(content).text


@given(st.integers(0, 120), st.integers(1, 60))
def test_no_page_at_any_offset_shows_a_piece_of_a_secret(offset: int, limit: int) -> None:
    content = f"前文前文前文 {KEY} 后文后文后文"
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        cut = page(file, offset, limit)
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
        shown = "".join(one.texts[0] for one in pages_of(file, limit))

    assert shown == REDACTOR.redact(content.decode("utf-8", "replace")).text
