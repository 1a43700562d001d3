"""Files are read in the encoding they have, and what is no text is refused."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.storage.encodings import decode_text

NOVEL = "第一章\r\n\r\n　　林远推开门。「有人吗？」\r\n她走了 —— “再见”。𠮷😀\n"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (b"", "utf-16-le"),
        (b"", "utf-16-be"),
        (b"", "gb18030"),
    ],
)
def test_a_text_is_the_same_in_every_encoding(mark: bytes, encoding: str) -> None:
    found = decode_text(mark + NOVEL.encode(encoding))

    assert found.text == NOVEL
    assert found.encoding == encoding


@given(st.text())
def test_any_utf8_text_without_control_characters_is_read_as_it_is(text: str) -> None:
    clean = "".join(c for c in text if c >= " " or c in "\t\n\r").removeprefix("\ufeff")

    assert decode_text(clean.encode()).text == clean


def test_a_few_broken_bytes_do_not_turn_a_novel_into_nonsense() -> None:
    data = (NOVEL * 50).encode()

    found = decode_text(data[:-1] + b"\xff")

    assert found.encoding == "utf-8"
    assert found.text.startswith(NOVEL)


def test_an_ascii_text_in_wide_characters_is_recognised() -> None:
    assert decode_text("plain\r\n".encode("utf-16-le")).text == "plain\r\n"


def test_nothing_is_an_empty_text() -> None:
    assert decode_text(b"").text == ""


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x00\x00\x00\x02\x00\x08\x06",
        bytes(range(256)),
        b"\x00\x00",
        b"a\x00b",
        b"\xff" * 9,
        b"caf\xe9",
    ],
)
def test_what_is_no_text_is_refused(data: bytes) -> None:
    with pytest.raises(DaemonError) as caught:
        decode_text(data)

    assert caught.value.code is ErrorCode.UNSUPPORTED
    assert caught.value.details["reason"] == "invalid_format"
