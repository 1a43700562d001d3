"""JSON has one spelling: equal values give equal bytes."""

import json
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.text import (
    VOLATILE_KEYS,
    canonical_json,
    common_prefix,
    encode_canonical,
    file_stem,
    join_surrogates,
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
