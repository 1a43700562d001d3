"""Boundaries are where a reader would put them, however the text around them looks."""

import re
from itertools import pairwise

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from creonowd.tokens import boundaries
from creonowd.tokens.boundaries import (
    additive_parts,
    additive_points,
    adds_up,
    grapheme_ceiling,
    grapheme_floor,
    paragraphs,
    sentences,
    settled_end,
)
from testing.novels import SENTENCES
from tests.tokens.vocabulary import ALL_TABLES, texts, tokenizer

CLUSTERS = st.text(
    st.sampled_from("a林。か\u3099ｶﾞ😀👨👍🏽🇨🇳\u200d\u0301\ufe0f\r\n각각क्षन\u093f\u0600\u0e33©"),
    max_size=16,
)

lines = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4).map("".join)
long_texts = st.lists(st.one_of(lines, st.just("x" * 3000), texts), max_size=40).map("\n".join)


@settings(max_examples=1000)
@given(st.one_of(texts, CLUSTERS), st.data())
def test_floor_and_ceiling_are_the_nearest_grapheme_boundaries(
    text: str, data: st.DataObject
) -> None:
    boundaries = [0, *(match.end() for match in regex.finditer(r"\X", text))]
    position = data.draw(st.integers(0, len(text)))

    assert grapheme_floor(text, position) == max(b for b in boundaries if b <= position)
    assert grapheme_ceiling(text, position) == min(b for b in boundaries if b >= position)


def test_a_wall_of_flags_is_cut_between_flags() -> None:
    text = "a" + "🇨🇳" * 100_000

    assert grapheme_floor(text, 100_000) == 99_999
    assert grapheme_ceiling(text, 100_000) == 100_001
    assert grapheme_floor(text, 99_999) == 99_999


def test_a_paragraph_begins_where_a_line_has_something_on_it() -> None:
    rows = (
        ("一\n二\n", ["一\n", "二\n"]),
        ("一\r\n\r\n　　二", ["一\r\n\r\n", "　　二"]),
        ("一\n　\n\n二", ["一\n　\n\n", "二"]),
        ("a\rb", ["a\r", "b"]),
        ("\n\n一", ["\n\n", "一"]),
        ("一\n \n", ["一\n \n"]),
    )

    wrong = [
        f"{text!r} became {got!r}, not {expected!r}"
        for text, expected in rows
        if (got := _split(text, list(paragraphs(text, 0, len(text))))) != expected
    ]

    assert not wrong, "\n".join(wrong)


def test_a_sentence_ends_with_its_closing_marks_and_spaces() -> None:
    rows = (
        ("他走了。她也走了！", ["他走了。", "她也走了！"]),
        ("「走！」他说。", ["「走！」", "他说。"]),
        ("他说「走」就走", ["他说「走」", "就走"]),
        ("真的？！　好。", ["真的？！　", "好。"]),
        ("He left. She stayed.", ["He left. ", "She stayed."]),
        ('"Go!" he said.', ['"Go!" ', "he said."]),
        ("It cost 3.14 or e.g.this", ["It cost 3.14 or e.g.this"]),
        ("Wait...... what", ["Wait...... ", "what"]),
        ("好。\ufe00了", ["好。\ufe00了"]),
    )

    wrong = [
        f"{text!r} became {got!r}, not {expected!r}"
        for text, expected in rows
        if (got := _split(text, list(sentences(text, 0, len(text))))) != expected
    ]

    assert not wrong, "\n".join(wrong)


@settings(max_examples=500)
@given(st.text(st.sampled_from("。！？．」』.!?”)] \n文a"), max_size=16))
def test_sentences_end_where_the_plain_rule_says(text: str) -> None:
    """What is spelled so that it is found quickly finds the same."""
    closers = r"[」』”’\"'）)】》〉\]]*+"
    spelled = rf"[。！？｡．]++{closers}|[」』]++|(?<![.!?])[.!?]++{closers}(?=\s|\Z)"
    plain = re.compile(rf"(?:{spelled})[^\S\r\n]*+")

    assert list(sentences(text, 0, len(text))) == [m.end() for m in plain.finditer(text)]


@given(texts, st.integers(0, 60), st.integers(0, 60))
def test_a_range_has_the_boundaries_of_the_whole_that_lie_in_it(
    text: str, start: int, end: int
) -> None:
    for rank in (paragraphs, sentences):
        whole = list(rank(text, 0, len(text)))

        assert list(rank(text, start, end)) == [at for at in whole if start < at <= end]


def _split(text: str, ends: list[int]) -> list[str]:
    edges = sorted({0, *ends, len(text)})
    return [text[start:end] for start, end in pairwise(edges)]


@pytest.mark.parametrize("encoding", ALL_TABLES)
@settings(max_examples=1000)
@given(text=texts)
@example("Mr. ß！？")
@example(". ß words")
@example("words⁘")
@example("堆：鏵！촱［")
def test_counts_add_up_at_every_additive_point(encoding: str, text: str) -> None:
    counter = tokenizer(encoding)
    found = [0, *additive_points(text, 0, len(text)), len(text)]

    parts = [text[start:end] for start, end in pairwise(found)]

    assert sum(map(counter.count, parts)) == counter.count(text)


def test_prose_has_additive_points_everywhere() -> None:
    assert additive_points("他走了。她说：「好」 and left.\n", 0, 24) == [3, 6, 9, 14, 19]


def test_a_space_makes_a_point_only_where_it_parts_two_words() -> None:
    assert additive_points("two words 3 of 于 him", 0, 20) == [3, 9, 14]
    assert adds_up("word", " word")
    assert adds_up("line\n", "  indented")
    assert not adds_up("line\n", " indented by one")


@pytest.mark.parametrize("encoding", ALL_TABLES)
@given(text=long_texts)
def test_counts_of_parts_add_up(encoding: str, text: str) -> None:
    counter = tokenizer(encoding)

    pieces = list(additive_parts(text))

    assert "".join(pieces) == text
    assert sum(map(counter.count, pieces)) == counter.count(text)


@pytest.mark.parametrize("encoding", ALL_TABLES)
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


@given(st.text(st.sampled_from("ab1雨,. \n/"), min_size=300, max_size=900), st.integers(1, 9))
def test_a_line_is_split_at_the_same_points_however_it_is_searched(text: str, size: int) -> None:
    whole = list(additive_parts(text))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(boundaries, "SEARCHED", size)
        assert list(additive_parts(text)) == whole


def test_a_word_without_an_end_is_searched_a_piece_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One search of it would hold up all threads, and could not be stopped."""
    checks: list[None] = []
    monkeypatch.setattr(boundaries, "check_stopped", lambda: checks.append(None))

    assert list(additive_parts("a" * 1_000_000)) == ["a" * 1_000_000]

    assert len(checks) >= 10


@given(st.one_of(long_texts, texts), st.text("他走了。 \n　x", max_size=12))
def test_parts_before_the_settled_end_stay_whatever_is_typed(text: str, typed: str) -> None:
    end = settled_end(text)

    settled = list(additive_parts(text[:end])) if end else []

    assert list(additive_parts(text))[: len(settled)] == settled
    assert list(additive_parts(text + typed))[: len(settled)] == settled


def test_all_but_the_last_lines_are_settled() -> None:
    line = "她又想起那夜的雨，想起桥上的人，想起那盏没有点着的灯，和灯下那一封不曾拆开的信，还有信上那个早已模糊的名字。"
    text = f"{line * 2}\n" * 20 + "还没有写完的一行"

    assert text[settled_end(text) :] == "还没有写完的一行"
