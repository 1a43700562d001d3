"""JSON has one spelling: equal values give equal bytes."""

import codecs
import json
import re
import tracemalloc
from pathlib import PurePosixPath
from time import process_time
from typing import Literal
from unicodedata import combining, decomposition, normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.text import (
    MOST_VALUES,
    VOLATILE_KEYS,
    TextLines,
    canonical_json,
    common_prefix,
    count_values,
    decode_text,
    encode_canonical,
    file_stem,
    has_too_many_values,
    join_surrogates,
    late_pattern,
    lines_of,
    mark_patterns,
    normal_form,
    well_formed_json,
    well_formed_value,
)

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(value=values)
def test_key_order_and_white_space_do_not_matter(value: object) -> None:
    loose = json.dumps(value, indent=3)
    turned = json.dumps(value, ensure_ascii=False, sort_keys=True)

    assert canonical_json(loose) == canonical_json(turned)
    assert canonical_json(canonical_json(loose)) == canonical_json(loose)


def test_keys_are_sorted_and_text_stays_readable() -> None:
    assert canonical_json('{"b": [1, 2.50], "a": "\\u6797\\u8fdc"}') == '{"a":"林远","b":[1,2.5]}'


def test_what_changes_with_every_call_of_a_host_is_left_out() -> None:
    value = {"text": "x", "timestamp": 1, "in": [{"requestId": "r", "nonce": 2, "keep": 3}]}

    assert encode_canonical(value, without=VOLATILE_KEYS) == '{"in":[{"keep":3}],"text":"x"}'


def test_a_lone_surrogate_becomes_the_replacement_character() -> None:
    assert canonical_json('["\\ud83d"]') == '["\ufffd"]'
    assert canonical_json('["\\ud83d\\ude00"]') == '["😀"]'


@pytest.mark.parametrize("text", ["", "{", "{'a': 1}", "NaN", "[Infinity]", "1e999", "[" * 100_000])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical_json(text)


def test_a_json_text_keeps_whole_pairs_and_loses_lone_surrogates() -> None:
    body = rb'{"\ud83d": ["\ud83d\ude00", "\\ud83d", "\\\ude00"]}'

    assert well_formed_json(body) == rb'{"\ufffd": ["\ud83d\ude00", "\\ud83d", "\\\ufffd"]}'


@pytest.mark.parametrize(
    ("body", "mended"),
    [
        (rb"\ud83d\ud83d\ude00", rb"\ufffd\ud83d\ude00"),
        (rb"\ud83d\ude00\ude00", rb"\ud83d\ude00\ufffd"),
        (rb"\\ud83d\ude00", rb"\\ud83d\ufffd"),
        (rb"\\\ud83d\ude00", rb"\\\ud83d\ude00"),
        (rb"\uDBFF\uDFFF\uDBFF", rb"\uDBFF\uDFFF\ufffd"),
    ],
)
def test_only_a_half_without_its_other_half_is_replaced(body: bytes, mended: bytes) -> None:
    assert well_formed_json(body) == mended


@pytest.mark.parametrize("body", [rb"\ud800" * 20_000, rb"\ud83d\ude00" * 200_000 + rb"\ud800"])
def test_more_halves_than_a_text_has_by_accident_are_left(body: bytes) -> None:
    assert well_formed_json(body) == body


def test_a_value_is_made_well_formed_in_keys_and_members() -> None:
    value = {"a\ud83d": ["\ude00", {"b": "😀"}, 1, None]}

    assert well_formed_value(value) == {"a\ufffd": ["\ufffd", {"b": "😀"}, 1, None]}


@given(st.lists(st.text("ab.第 ", min_size=1).filter(lambda name: name != "."), min_size=1))
def test_the_stem_of_a_path_is_that_of_its_last_name(names: list[str]) -> None:
    path = "/".join(names)

    assert file_stem(path) == PurePosixPath(path).stem


def test_halves_of_a_character_are_joined_and_lone_ones_replaced() -> None:
    assert join_surrogates("\ud83d\ude00 好 \ud83d") == "😀 好 \ufffd"


@given(st.binary(), st.binary(), st.binary())
def test_the_common_prefix_is_the_longest(start: bytes, one: bytes, other: bytes) -> None:
    common = common_prefix(start + one, start + other)

    assert common >= len(start)
    assert (start + one)[:common] == (start + other)[:common]
    assert (start + one)[common : common + 1] != (start + other)[common : common + 1] or (
        common == min(len(start + one), len(start + other))
    )


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


FEW = {
    "a long text": '"' + ",[{" * 1_000_000 + '"',
    "a text with escapes": '"' + r"\\\",\n,[" * 400_000 + '"',
    "backslashes at the ends of slices": '"'
    + ",[{" * 50_000
    + r"\\" * 400_000
    + r"\"" * 90_001
    + '"',
    "many texts": "[" + ",".join(['"x,y,z"'] * 90_000) + "]",
}
MANY = {
    "lists": "[" + "[]," * 110_000 + "[]]",
    "numbers": "[" + "1," * 110_000 + "1]",
    "texts": "[" + '"",' * 300_000 + '""]',
    "members": "{" + ",".join(f'"{n}":{{}}' for n in range(110_000)) + "}",
    "behind many backslashes": '["' + r"\\" * 400_000 + '",' + "[]," * 110_000 + "1]",
    "behind a text": r'["\"",' + "[]," * 110_000 + "1]",
}


@pytest.mark.parametrize("name", FEW)
def test_a_message_of_few_values_is_read_however_long(name: str) -> None:
    assert not has_too_many_values(FEW[name].encode())


@pytest.mark.parametrize("name", MANY)
def test_a_json_text_of_very_many_values_is_known_before_it_is_decoded(name: str) -> None:
    assert has_too_many_values(b'{"x":%s}' % MANY[name].encode())


def test_values_are_counted_no_further_than_to_the_slice_with_one_too_many() -> None:
    counts = list(count_values(b"[" + b"1," * 5_000_000 + b"1]"))

    assert counts[0] > MOST_VALUES


def test_json_of_very_many_values_is_no_file_of_an_author() -> None:
    with pytest.raises(ValueError, match="too many values"):
        canonical_json("[" + "[]," * 200_000 + "[]]")


def test_a_late_pattern_finds_what_a_compiled_one_does() -> None:
    late, compiled = late_pattern("(雪)|x", re.IGNORECASE), re.compile("(雪)|x", re.IGNORECASE)

    assert late.findall("雪Xx") == compiled.findall("雪Xx")
    assert late.sub("-", "雪X.") == "--."
    assert (late.pattern, late.flags) == (compiled.pattern, compiled.flags)


LINE_ENDS = ("\n", "\r\n", "\r", "\v", "\x85", "\u2028")


@given(
    pieces=st.lists(
        st.tuples(st.integers(0, 90_000), st.sampled_from(("", "x", *LINE_ENDS))), max_size=4
    )
)
def test_lines_are_those_of_the_whole_text_wherever_it_is_cut(
    pieces: list[tuple[int, str]],
) -> None:
    text = "".join("雨" * length + end for length, end in pieces)

    assert list(lines_of(text)) == text.splitlines(keepends=True)


@pytest.mark.parametrize("end", LINE_ENDS)
def test_lines_of_a_long_text_are_those_of_the_whole(end: str) -> None:
    text = end * 70_000 + "x" + end * 70_000

    assert list(lines_of(text)) == text.splitlines(keepends=True)


FORMS: tuple[Literal["NFC", "NFD", "NFKC"], ...] = ("NFC", "NFD", "NFKC")
# Marks, letters that take them, and what is a mark only in pieces or in a compatible spelling.
MARKED = st.text(
    st.sampled_from(
        "\u0301\u0316\u0344\u0345\u034f\u0f73\u3099\uff9e\uff9fae雨가\u1100\u1161\u11a8\ufdfa"
    )
)


@given(MARKED, MARKED.map(lambda text: text * 40), MARKED)
def test_a_normal_form_is_the_one_that_python_finds(first: str, many: str, last: str) -> None:
    for form in FORMS:
        for text in (first + many + last, "é" * 20_000 + many + "雨" * 20_000 + last):
            assert normal_form(form, text) == normalize(form, text)


@pytest.mark.parametrize("marks", ["\u0301\u0316", "\u0301\u0300", "\u20dd\u20de"])
def test_a_text_of_nothing_but_marks_takes_a_few_times_its_size(marks: str) -> None:
    text = "雨" + marks * 250_000
    normal_form("NFC", text[:1000])
    tracemalloc.start()
    try:
        assert len(normal_form("NFC", text)) >= 500_000
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert most < 6 * 2 * len(text)


def test_the_marks_behind_one_letter_are_put_in_order_in_a_time_that_grows_with_their_number() -> (
    None
):
    """Python takes half a minute for these, and holds up every thread meanwhile."""
    marks = 100_000
    began = process_time()

    for form in FORMS:
        ordered = normal_form(form, "雨" + "\u0301\u0316" * marks)
        assert ordered == "雨" + "\u0316" * marks + "\u0301" * marks

    assert process_time() - began < 5


def test_nothing_before_a_piece_of_a_text_changes_what_the_piece_begins_with() -> None:
    marks, beginning = mark_patterns()
    every = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    pairs = (decomposition(one).split() for one in every)
    behind = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and pair[0][0] != "<"}

    for one in every:
        first = normalize("NFKD", one)[0]
        if combining(first):
            assert marks.match(one * 32), hex(ord(one))
        if combining(first) or first in behind or "\u1160" <= first <= "\u11ff":
            assert not beginning.match(one), hex(ord(one))


@given(st.text(st.sampled_from("a雨\n\r "), max_size=30))
def test_lines_are_those_of_the_text_with_any_line_ends(text: str) -> None:
    plain = text.replace("\r\n", "\n").replace("\r", "\n").rstrip("\n")
    expected = plain.split("\n") if text else []

    lines = TextLines(text)

    assert (list(lines), len(lines)) == (expected, len(expected))
    assert list(lines[1:3]) == expected[1:3]
    assert list(lines[-2:]) == expected[-2:]
    assert list(lines.where(str.strip)) == [line for line in expected if line.strip()]
