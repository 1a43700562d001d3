"""Edits equal their replay on a plain string, and both ways of counting positions agree."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.buffer import (
    PIECE,
    Buffer,
    Edit,
    code_points,
    from_utf16,
    to_utf16,
    utf16_length,
)

snippets = st.text(st.sampled_from("ab林远😀𠮷\r\n。"), max_size=8)
lengths = st.integers(0, 3 * PIECE)

any_place = st.integers(-2, 40) | st.sampled_from([PIECE - 1, PIECE, 2**31, 2**53, -(2**63)])
wild = st.lists(st.tuples(any_place, any_place, st.text("a林😀𠮷\r\n", max_size=6)), max_size=6)

texts = st.text(st.sampled_from("a林é\n\r😀𠮷\ufffd"), max_size=20)


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """Draw a text that may be longer than a few pieces."""
    return draw(snippets) * draw(st.one_of(st.just(1), lengths))


@st.composite
def places(draw: st.DrawFn) -> int:
    """Draw a place in whatever the text will be then, often next to where two pieces meet."""
    near = st.builds(int.__add__, st.sampled_from([0, PIECE, 2 * PIECE]), st.integers(0, 2))
    return draw(st.one_of(near, st.integers(0, 8 * PIECE)))


plans = st.lists(st.tuples(places(), places(), long_texts()), max_size=12)


@pytest.mark.fuzz
@pytest.mark.parametrize("utf16", [False, True], ids=["code points", "UTF-16"])
@given(text=long_texts(), plan=plans)
def test_edits_equal_their_replay_on_a_plain_string(
    *, utf16: bool, text: str, plan: list[tuple[int, int, str]]
) -> None:
    edits, plain = _replay(text, plan, utf16=utf16)

    at_once = Buffer.of(text).apply(edits, utf16=utf16)
    count_on_demand = Buffer.of(text)
    for edit in edits:
        count_on_demand = count_on_demand.apply([edit], utf16=utf16)

    assert at_once.text == count_on_demand.text == plain
    assert at_once.length == len(plain)
    assert at_once.utf16_length == utf16_length(plain)


def _replay(text: str, plan: list[tuple[int, int, str]], *, utf16: bool) -> tuple[list[Edit], str]:
    edits: list[Edit] = []
    for one, other, new in plan:
        start, end = sorted((one % (len(text) + 1), other % (len(text) + 1)))
        units = to_utf16(text, (start, end)) if utf16 else {start: start, end: end}
        ends = (units[start], units[end])
        edits.append(Edit(start=ends[0], end=ends[1], text=new))
        text = text[:start] + new + text[end:]
    return edits, text


@given(text=long_texts(), share=st.floats(0, 1))
def test_a_position_in_a_buffer_is_that_in_its_text(text: str, share: float) -> None:
    position = round(share * len(text))

    assert Buffer.of(text).from_utf16(to_utf16(text, [position])[position]) == position


@pytest.mark.parametrize(
    ("start", "end", "utf16"),
    [(0, 7, True), (0, 5, False), (-1, 0, False), (3, 2, False), (3, 3, True), (0, 5, True)],
    ids=["past UTF-16", "past", "negative", "inverted", "inside a pair", "to inside a pair"],
)
def test_an_edit_that_does_not_fit_is_refused(*, start: int, end: int, utf16: bool) -> None:
    buffer = Buffer.of("ab😀😀")
    fits = Edit(start=0, end=0, text="")

    with pytest.raises(DaemonError) as caught:
        buffer.apply([fits, Edit(start=start, end=end, text="x")], utf16=utf16)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert buffer.text == "ab😀😀"


def test_an_edit_leaves_the_buffer_it_came_from_as_it_was() -> None:
    before = Buffer.of("林远" * 10_000)

    after = before.apply([Edit(start=5, end=7, text="走")])

    assert before.text == "林远" * 10_000
    assert after.length == before.length - 1


def test_typing_and_deleting_do_not_crumble_the_text() -> None:
    buffer = Buffer.of("林" * 100_000)

    typed = buffer.apply([Edit(start=50_000, end=50_000, text="走")] * 20_000)
    thinned = typed.apply([Edit(start=number, end=number + 100, text="") for number in range(900)])

    assert typed.text == "林" * 50_000 + "走" * 20_000 + "林" * 50_000
    assert typed.pieces < 100
    assert thinned.length == 120_000 - 90_000
    assert thinned.pieces < 60


@pytest.mark.fuzz
@pytest.mark.parametrize("utf16", [False, True], ids=["code points", "UTF-16"])
@given(text=st.text("ab林😀𠮷\r\n", max_size=30), plan=wild)
def test_edits_anywhere_fit_or_change_nothing(
    *, utf16: bool, text: str, plan: list[tuple[int, int, str]]
) -> None:
    """The model is plain: cut the bytes of the encoding, and see whether a text is left."""
    buffer = Buffer.of(text)
    edits = [Edit(start=start, end=end, text=new) for start, end, new in plan]
    expected = _cut_by_bytes(text, edits, "utf-16-le" if utf16 else "utf-32-le")

    try:
        edited = buffer.apply(edits, utf16=utf16).text
    except DaemonError as error:
        edited = None if error.code is ErrorCode.INVALID_ARGUMENT else error.code

    assert edited == expected
    assert buffer.text == text


def _cut_by_bytes(text: str, edits: list[Edit], encoding: str) -> str | None:
    """Give the edited text; None if an edit lies outside of it, runs backwards or tears a pair."""
    width = 2 if encoding == "utf-16-le" else 4
    data = text.encode(encoding)
    for edit in edits:
        start, end = edit.start * width, edit.end * width
        if not 0 <= start <= end <= len(data):
            return None
        try:
            data[:start].decode(encoding)
            data[:end].decode(encoding)
        except UnicodeDecodeError:
            return None
        data = data[:start] + edit.text.encode(encoding) + data[end:]
    return data.decode(encoding)


@given(texts, st.data())
def test_a_position_survives_the_way_there_and_back(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))

    assert from_utf16(text, to_utf16(text, [position])[position]) == position


@given(texts)
def test_positions_converted_at_once_equal_those_converted_alone(text: str) -> None:
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
