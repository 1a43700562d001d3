"""Cuts fit, never split a grapheme, and are the largest of the best rank there is."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from itertools import accumulate, product

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from creonowd.tokens import ByteTokenizer, Tokenizer, exceeds, keep_head, keep_tail
from creonowd.tokens.boundaries import BLOCK, additive_parts, paragraphs, sentences
from creonowd.tokens.tokenizer import PendingCounts, count_on_demand
from tests.tokens.vocabulary import ALL_TABLES, texts, tokenizer

NOVEL = "林远推开门，屋里没有人。「有人吗？」他问。\r\n\r\n　　It rained, as it always did. 没有人回答……\n"
WALLS = (
    "😀" * 20_000,
    "哈" * 20_000,
    "x" * 20_000,
    "\u0301" * 9_000,
    "。" * 9_000,
    "\n" * 9_000,
    " " * 9_000,
)


def graphemes(text: str) -> list[int]:
    """List every grapheme boundary but the first, by going through the whole text."""
    return [match.end() for match in regex.finditer(r"\X", text)]


def largest_head(text: str, limit: int, counter: Tokenizer) -> int:
    """Find what `keep_head` promises by trying every boundary of every rank."""
    if counter.count(text) <= limit:
        return len(text)
    return best(text, lambda at: counter.count(text[:at]) <= limit, max, 0)


def largest_tail(text: str, limit: int, counter: Tokenizer) -> int:
    """Find what `keep_tail` promises by trying every boundary of every rank."""
    if counter.count(text) <= limit:
        return 0
    return best(text, lambda at: counter.count(text[at:]) <= limit, min, len(text))


def best(
    text: str, fits: Callable[[int], bool], pick: Callable[[Iterable[int]], int], nothing: int
) -> int:
    inside = range(1, len(text))
    for rank in (paragraphs(text, 0, len(text)), sentences(text, 0, len(text)), graphemes(text)):
        if found := [at for at in rank if at in inside and fits(at)]:
            return pick(found)
    return nothing


@pytest.mark.parametrize("encoding", ALL_TABLES)
@given(text=texts, limit=st.integers(0, 40))
def test_a_head_is_the_largest_that_fits(encoding: str, text: str, limit: int) -> None:
    counter = tokenizer(encoding)

    cut = keep_head(text, limit, counter)

    assert cut.at == largest_head(text, limit, counter)
    assert cut.tokens == counter.count(text[: cut.at]) <= limit


@pytest.mark.parametrize("encoding", ALL_TABLES)
@given(text=texts, limit=st.integers(0, 40))
def test_a_tail_is_the_largest_that_fits(encoding: str, text: str, limit: int) -> None:
    counter = tokenizer(encoding)

    cut = keep_tail(text, limit, counter)

    assert cut.at == largest_tail(text, limit, counter)
    assert cut.tokens == counter.count(text[cut.at :]) <= limit


@given(text=texts, limit=st.integers(0, 40), floor=st.integers(0, 20))
def test_no_cut_lies_inside_a_grapheme_or_exceeds_the_limit(
    text: str, limit: int, floor: int
) -> None:
    counter, whole = tokenizer("o200k_base"), {0, *graphemes(text)}

    head = keep_head(text, limit, counter, floor=floor)
    tail = keep_tail(text, limit, counter, floor=floor)

    assert head.at in whole
    assert tail.at in whole
    assert counter.count(text[: head.at]) <= limit
    assert counter.count(text[tail.at :]) <= limit


@pytest.mark.parametrize("encoding", ALL_TABLES)
@given(text=texts, before=texts, after=texts, limit=st.integers(0, 60))
def test_what_is_put_around_a_cut_counts_too(
    encoding: str, text: str, before: str, after: str, limit: int
) -> None:
    counter = tokenizer(encoding)

    head = keep_head(text, limit, counter, before=before, after=after)
    tail = keep_tail(text, limit, counter, before=before, after=after)

    assert head.tokens == counter.count(before + text[: head.at] + after)
    assert tail.tokens == counter.count(before + text[tail.at :] + after)
    assert head.tokens <= limit or head.at == 0
    assert tail.tokens <= limit or tail.at == len(text)


@pytest.mark.parametrize("encoding", ALL_TABLES)
def test_a_wall_without_joints_is_cut_close_to_the_limit(encoding: str) -> None:
    counter = tokenizer(encoding)
    wrong: list[str] = []
    for wall, limit in product(WALLS, (1, 500, 3000)):
        head, tail = keep_head(wall, limit, counter), keep_tail(wall, limit, counter)
        for cut, kept in ((head, wall[: head.at]), (tail, wall[tail.at :])):
            fits = cut.tokens == counter.count(kept) <= limit
            is_close = kept in {"", wall} or cut.tokens >= limit * 0.9 - 1
            if not (fits and is_close):
                wrong.append(f"{wall[0]!a} at {limit}: kept {len(kept)}, {cut.tokens} tokens")

    assert not wrong, "\n".join(wrong)


@settings(max_examples=30)
@given(limit=st.integers(0, 20_000), shift=st.integers(0, 60))
@example(limit=0, shift=0)
def test_a_long_text_is_cut_at_the_last_paragraph_that_fits(limit: int, shift: int) -> None:
    counter, text = tokenizer("o200k_base"), ("！" * shift + NOVEL * 400)

    head, tail = keep_head(text, limit, counter), keep_tail(text, limit, counter)

    assert head.tokens == counter.count(text[: head.at]) <= limit
    assert tail.tokens == counter.count(text[tail.at :]) <= limit
    later = next(paragraphs(text, head.at, len(text)), len(text))
    assert head.at == len(text) or counter.count(text[:later]) > limit


def test_a_paragraph_that_keeps_too_little_gives_way_to_a_sentence() -> None:
    text = "序\n" + "他走了。她也走了。" * 20

    whole_paragraph = keep_head(text, 40, ByteTokenizer())
    sentence = keep_head(text, 40, ByteTokenizer(), floor=5)

    assert text[: whole_paragraph.at] == "序\n"
    assert text[: sentence.at] == "序\n他走了。她也走了。"[: sentence.at]
    assert text[sentence.at - 1] == "。"


@given(text=texts, limit=st.integers(0, 60))
def test_a_text_exceeds_a_limit_exactly_if_its_count_does(text: str, limit: int) -> None:
    counter = tokenizer("o200k_base")

    assert exceeds(text, limit, counter) == (counter.count(text) > limit)


class Meter:
    """A tokenizer that notes how much it was made to encode."""

    id, version, exact, longest = "meter", "1", True, 1

    def __init__(self) -> None:
        self.measured = 0

    def count(self, text: str) -> int:
        """Count code points."""
        self.measured += len(text)
        return len(text)

    def begin_count(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[PendingCounts]:
        """Count code points of each."""
        del ahead
        return count_on_demand(self.count, texts)


@pytest.mark.parametrize("keep", [keep_head, keep_tail])
def test_cutting_encodes_little_more_than_it_keeps(keep: Callable[..., object]) -> None:
    meter, text = Meter(), NOVEL * 20_000

    keep(text, 6000, meter)

    assert meter.measured < 6000 + 4 * BLOCK


def test_a_text_of_ten_megabytes_is_known_to_be_too_long_without_reading_it() -> None:
    meter, text = Meter(), "林" * 10_000_000

    assert exceeds(text, 64_000, meter)

    assert meter.measured == 0


@given(
    text=st.one_of(
        texts, st.lists(st.sampled_from((NOVEL, "x", "😀" * 90)), max_size=30).map("".join)
    ),
    limit=st.integers(0, 400),
    floor=st.integers(0, 60),
    heading=st.sampled_from(("", "### ref:a\n")),
)
def test_what_is_known_of_a_text_changes_no_cut(
    text: str, limit: int, floor: int, heading: str
) -> None:
    counter = tokenizer("o200k_base")
    parts = list(additive_parts(heading + text))
    ends = accumulate(map(len, parts))
    sums = accumulate(map(counter.count, parts))
    known = list(zip(ends, sums, strict=True))[:-1]

    cut = keep_head(text, limit, counter, floor=floor, before=heading, after="\n", known=known)

    assert cut == keep_head(text, limit, counter, floor=floor, before=heading, after="\n")
