"""Documents are split where no secret lies, and at the same places wherever one looks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction.split_points import GRID, private_keys, split_points

BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"
PROSE = "".join(f"林远推开门，雨还在下，这是第{n}。\n" for n in range(500))
LINES = (
    "林远推开门，雨还在下。",
    "She left. It rained!",
    "他走了，她没有回头，雨还在下，" * 700,
    BEGIN,
    END,
    "Comment: made by hand.",
    "—BEGIN PRIVATE KEY—",
    "-----begin private key-----",
    "Private-Lines: 7",
    "Private-MAC: 0123",
)
DOCUMENTS = st.lists(st.sampled_from(LINES), max_size=40).map("\n".join)


@given(text=DOCUMENTS, data=st.data())
def test_split_points_do_not_depend_on_where_one_looks(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))

    found = split_points(text, start, end)

    assert found == [point for point in split_points(text, 0, len(text)) if start < point.at < end]


def test_a_private_key_is_known_from_far_behind_its_first_line_and_from_within_it() -> None:
    """A look from the middle of a long key, and one that ends inside the line that opens it."""
    key = f"{BEGIN}\n" + "Comment: made by hand.\n" * 2500
    text = f"{PROSE}{'，' * (3 * GRID - len(PROSE) - 8)}{key}{END}\n{PROSE}"
    whole = split_points(text, 0, len(text))

    for start, end in ((text.index(END) - GRID, len(text)), (0, text.index(BEGIN) + 12)):
        expected = [point for point in whole if start < point.at < end]
        assert expected
        assert split_points(text, start, end) == expected


def test_typing_leaves_the_other_split_points_alone() -> None:
    place, typed = len(PROSE) // 2, "新字"

    before = {point.at for point in split_points(PROSE, 0, len(PROSE))}
    after = split_points(PROSE[:place] + typed + PROSE[place:], 0, len(PROSE) + len(typed))
    moved = {point.at - (len(typed) if point.at > place else 0) for point in after}

    assert len(before) > 10
    assert len(before ^ moved) <= 1


def test_text_without_sentences_is_split_on_a_grid() -> None:
    text = "他走了，她没有回头，" * 4000

    found = split_points(text, 0, len(text))

    assert [point.at // GRID for point in found] == list(range(1, len(text) // GRID + 1))
    assert all(point.may_cut_secret for point in found)


def test_a_private_key_is_split_nowhere_but_on_the_grid() -> None:
    comments = "".join(f"Comment: {n}, made by hand.\n" for n in range(900))
    text = f"{PROSE}{BEGIN}\n{comments}{END}\n{PROSE}"
    first, last = text.index(BEGIN), text.index(END)

    inside = [point for point in split_points(text, 0, len(text)) if first < point.at < last]

    assert len(inside) > 1
    assert all(point.may_cut_secret for point in inside)
    assert all(text.startswith(BEGIN, point.key) for point in inside)


def test_private_keys_reach_from_their_first_dash_to_their_last() -> None:
    key = f"{BEGIN}\nQm3kP9xW2z\n{END}"
    text = f"钥匙：\n{key}\n还有\n{key}"

    found = [text[start:end] for start, end in private_keys(text)]

    assert found == [key, key]
    assert private_keys("BEGIN, END and private key") == []


def test_a_private_key_without_an_end_goes_on_to_the_next() -> None:
    text = f"{END}\n{BEGIN}\nabc\n{BEGIN}\nabc"

    first, second = private_keys(text)

    assert (first[0], second[0]) == (text.index(BEGIN), text.rindex(BEGIN))
    assert min(first[1], second[1]) > len(text)


def is_ever_split(above: str, below: str) -> bool:
    """Try many last letters: they decide which of eight line ends is a split point."""
    texts = (f"{above[:-1]}{chr(0x4E00 + n)}{above[-1]}\n{below}\n" for n in range(64))
    return any(
        text.index(below) in {point.at for point in split_points(text, 0, len(text))}
        for text in texts
    )


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("密码见下。", "Lm48xqPt"),
        ("The password is below.", "Mk3pLw9sZq"),
        ("Bo: what's the password?", "Mei: Gr8ful-Otter"),
        ("mei,kW92nnd1,old.", "bo,plum-tree,new."),
        ("| mei | kW92nnd1 | old.", "| bo | plum-tree | new."),
        ("mei\tkW92nnd1\told.", "bo\tplum-tree\tnew."),
    ],
)
def test_what_names_a_secret_is_not_split_from_it(above: str, below: str) -> None:
    assert not is_ever_split(above, below)
    assert is_ever_split("She left, and it rained.", below)
