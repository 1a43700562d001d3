"""How documents are cut."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.retrieval.passages import MOST_TOKENS, cut
from creonowd.tokens.tokenizer import Tokenizers

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
PROSE = "　　他站在城门口，望着雪里的灯火，一句话也没有说。风从河上来，吹灭了两盏。\r\n"


def novel() -> str:
    """The Chinese novel of the shared corpus where it is there, else prose of our own."""
    path = CORPUS / "hongloumeng.txt"
    if path.is_file():
        return path.read_bytes().decode("utf-8-sig")
    return "".join(f"第{n}章 雪\r\n" + PROSE * (n % 40 + 1) for n in range(1, 80))


def test_a_passage_knows_its_lines_headings_and_offsets():
    text = "# 卷一\n\n## 雪\n\n下雪了。\n\n天亮了。\n"

    (passage,) = cut(text)

    assert passage.lines == "L1-L7"
    assert passage.heading == ("卷一", "雪")
    assert text[passage.start : passage.end] == passage.text == text.rstrip()


def test_a_heading_opens_a_passage():
    passages = list(cut("# 一\n甲\n# 二\n乙\n"))

    assert [(p.lines, p.heading) for p in passages] == [("L1-L2", ("一",)), ("L3-L4", ("二",))]


def test_lines_are_counted_as_editors_do():
    passages = list(cut("甲\r\n乙\r丙\n\n# 丁\r\n戊"))

    assert [passage.lines for passage in passages] == ["L1-L3", "L5-L6"]


def test_passages_are_about_four_hundred_tokens_at_most():
    tokenizer = Tokenizers().load()

    counts = [tokenizer.count(passage.text) for passage in cut(novel())]

    assert max(counts) <= MOST_TOKENS * 1.1
    assert sum(counts) / len(counts) > MOST_TOKENS / 3


@pytest.mark.parametrize("text", ["𠀀" * 5000, "㐀" * 5000, "a" * 9000, "好" * 9000, "😀" * 3000])
def test_a_wall_of_characters_is_cut_too(text: str):
    tokenizer = Tokenizers().load()

    passages = list(cut(text))

    assert "".join(passage.text for passage in passages) == text
    assert max(tokenizer.count(passage.text) for passage in passages) <= MOST_TOKENS * 1.1
    assert {passage.lines for passage in passages} == {"L1-L1"}


def test_a_long_paragraph_is_cut_between_sentences():
    sentence = "他站在城门口，望着雪里的灯火，一句话也没有说。"

    passages = list(cut(sentence * 100))

    assert len(passages) > 1
    assert all(passage.text.endswith("。") for passage in passages)


def test_hard_wrapped_paragraphs_stay_whole():
    paragraph = "It is a truth universally acknowledged,\nthat a single man must want a wife.\n\n"

    passages = list(cut(paragraph * 60))

    assert len(passages) > 1
    assert all(passage.text.startswith("It is") for passage in passages)
    assert all(passage.text.endswith("wife.") for passage in passages)


def test_an_edit_changes_only_the_passages_around_it():
    text = novel()
    middle = len(text) // 2
    edited = text[:middle] + "他忽然想起一件事。\r\n" + text[middle:]

    before = {passage.text for passage in cut(text)}
    after = {passage.text for passage in cut(edited)}

    assert len(after - before) <= 5
    assert len(before - after) <= 5


@given(st.text(st.sampled_from("甲𠀀aB。！ \t\r\n#\u0301👩‍👧第一章")))
def test_every_character_that_is_not_blank_is_in_one_passage(text: str):
    passages = list(cut(text))

    assert "".join("".join(p.text for p in passages).split()) == "".join(text.split())
    assert all(text[p.start : p.end] == p.text for p in passages)
    assert all(a.end <= b.start for a, b in itertools.pairwise(passages))
