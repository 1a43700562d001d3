"""Counts add up at additive points and over parts, and typing changes only the part typed in."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from creonowd.tokens.additive import additive_parts, additive_points, adds_up
from testing.novels import SENTENCES
from tests.tokens.vocabulary import ENCODINGS, texts, tokenizer

lines = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map("".join)
long_texts = st.lists(st.one_of(lines, st.just("x" * 3000), texts), max_size=40).map("\n".join)


@pytest.mark.parametrize("encoding", ENCODINGS)
@settings(max_examples=1000)
@given(text=texts)
def test_counts_add_up_at_every_additive_point(encoding: str, text: str) -> None:
    counter = tokenizer(encoding)
    found = [0, *additive_points(text, 0, len(text)), len(text)]

    parts = [text[start:end] for start, end in pairwise(found)]

    assert sum(map(counter.count, parts)) == counter.count(text)


def test_prose_has_additive_points_everywhere() -> None:
    assert additive_points("他走了。她说：「好」 and left.\n", 0, 24) == [3, 6, 9, 14, 19]


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(text=long_texts)
def test_counts_of_parts_add_up(encoding: str, text: str) -> None:
    counter = tokenizer(encoding)

    pieces = list(additive_parts(text))

    assert "".join(pieces) == text
    assert sum(map(counter.count, pieces)) == counter.count(text)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(left=texts, right=texts)
def test_neighbours_that_add_up_have_the_sum_of_their_tokens(
    encoding: str, left: str, right: str
) -> None:
    counter = tokenizer(encoding)

    if adds_up(left, right):
        assert counter.count(left) + counter.count(right) == counter.count(left + right)


def test_typing_leaves_the_other_parts_alone() -> None:
    paragraph = (
        "他在雨里站了很久，谁也没有说话，只有檐水滴落的声音，一下又一下地敲着石阶，像旧钟。\n"
    )
    text = "".join(f"{n}{paragraph}" for n in range(200))

    before, after = (
        set(additive_parts(text)),
        set(additive_parts(text[:4000] + "新字" + text[4000:])),
    )

    assert len(after - before) <= 2


def test_a_long_line_is_split_too() -> None:
    line = "".join(f"第{n}次他走了，她没有回头，只是数着{n * 7}步。" for n in range(1000))

    assert max(map(len, additive_parts(line))) < 3000
