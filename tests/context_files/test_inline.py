"""What is too long for a conversation shows its head, its tail and what is missing."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.context_files.slices import Amount, Reader, fits, preview
from creonowd.redaction import PLACEHOLDER, Redactor
from tests.context_files.files import file_of

LIMITS = Amount(4000, 16 * 1024)
READER = Reader(Redactor(), "ctx_1")


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
    assert not fits("😀" * 4000, Amount(4000, 15_999))


@pytest.mark.requirement("CF-034")
@settings(max_examples=50)
@given(st.sampled_from(["x", "红楼", "😀👍", "line\r\n", "é\n"]), st.integers(4001, 40_000))
def test_a_preview_holds_both_ends_within_the_limits(piece: str, characters: int) -> None:
    content = "HEAD" + (piece * characters)[:characters] + "TAIL"
    with tempfile.TemporaryDirectory() as folder, file_of(Path(folder), content.encode()) as file:
        shown = preview(file, "ctx_1", LIMITS, READER, len(content))

    head, _, rest = shown.text.partition("\n[… ")
    _, _, tail = rest.partition(" …]\n")
    assert content.startswith(head)
    assert content.endswith(tail)
    assert len(shown.text) <= LIMITS.characters
    assert len(shown.text.encode()) <= LIMITS.bytes
    assert shown.missing_characters == len(content) - len(head) - len(tail)
    assert shown.missing_bytes == len(content.encode()) - len(head.encode()) - len(tail.encode())
    assert f"{shown.missing_bytes} bytes" in rest
    assert "ctx_1" in rest


def test_a_preview_shows_no_secret_even_where_it_cuts_one(tmp_path: Path) -> None:
    key = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
    content = f"{key} " * 500
    with file_of(tmp_path, content.encode()) as file:
        shown = preview(file, "ctx_1", LIMITS, READER, len(content))

    assert "Zq8L" not in shown.text
    assert PLACEHOLDER in shown.text
    assert shown.evidence


def test_placeholders_longer_than_their_secrets_do_not_burst_the_limit(tmp_path: Path) -> None:
    content = "密码：Zq8Lw2\n" * 3000
    with file_of(tmp_path, content.encode()) as file:
        shown = preview(file, "ctx_1", LIMITS, READER, len(content))

    assert "Zq8Lw2" not in shown.text
    assert shown.text.count("密码") > 50
    assert len(shown.text) <= LIMITS.characters


def test_a_stray_byte_in_a_log_costs_one_character_of_its_preview(tmp_path: Path) -> None:
    data = b"HEAD \xff " + "红".encode() * 5000 + b" \xe7\xba TAIL"
    content = data.decode("utf-8", "replace")
    with file_of(tmp_path, data) as file:
        shown = preview(file, "ctx_1", LIMITS, READER, len(content))

    head, _, rest = shown.text.partition("\n[… ")
    _, _, tail = rest.partition(" …]\n")
    assert head.startswith("HEAD \ufffd 红")
    assert tail.endswith("红 \ufffd TAIL")
    assert shown.missing_characters == len(content) - len(head) - len(tail)
    assert shown.missing_bytes == 3 * shown.missing_characters
