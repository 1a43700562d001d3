"""Both ways of counting positions agree wherever both have one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.buffer import code_points, from_utf16, to_utf16, utf16_length

texts = st.text(st.sampled_from("a林é\n\r😀𠮷\ufffd"), max_size=20)


@given(texts, st.data())
def test_a_position_survives_the_way_there_and_back(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))

    assert from_utf16(text, to_utf16(text, [position])[position]) == position


@given(texts)
def test_positions_told_at_once_are_those_told_one_by_one(text: str) -> None:
    positions = range(len(text) + 1)

    assert to_utf16(text, positions) == {p: utf16_length(text[:p]) for p in positions}


@given(texts)
def test_every_unit_is_a_position_or_lies_inside_a_pair(text: str) -> None:
    units = range(utf16_length(text) + 1)

    found = [code_points(text, unit) for unit in units]

    pairs = sum(character > "\uffff" for character in text)
    assert [position for position in found if position is not None] == list(range(len(text) + 1))
    assert found.count(None) == pairs


def test_a_position_inside_a_pair_is_refused() -> None:
    with pytest.raises(DaemonError) as caught:
        from_utf16("a😀b", 2)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("position", [-1, 5])
def test_a_position_outside_the_text_is_refused(position: int) -> None:
    with pytest.raises(DaemonError) as caught:
        from_utf16("a😀b", position)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details == {"position": position, "length": 4}
