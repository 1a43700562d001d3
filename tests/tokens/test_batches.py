"""Many texts in few calls: each has the tokens that it has by itself."""

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BETWEEN, WORTH_A_THREAD, count_in_background
from tests.tokens.vocabulary import ENCODINGS, texts


def counts_of(many: list[str], encoding: tiktoken.Encoding, *, ahead: bool = False) -> list[int]:
    with count_in_background(many, encoding, ahead=ahead) as counts:
        return counts()


PROSE = "林远推开门，雨还在下；苏晴没有抬头。The rain had not stopped.\n"


@given(st.sampled_from(ENCODINGS), st.lists(texts, max_size=12))
def test_every_text_counts_as_it_does_by_itself(name: str, given_texts: list[str]) -> None:
    encoding = packaged_encoding(name)

    assert counts_of(given_texts, encoding) == [
        len(encoding.encode_ordinary(text)) for text in given_texts
    ]


@pytest.mark.parametrize("ahead", [True, False])
@pytest.mark.parametrize("name", ENCODINGS)
def test_so_it_does_when_there_is_work_for_several_threads(name: str, *, ahead: bool) -> None:
    """Of every length, so that shares are uneven and one text is more than a share."""
    encoding = packaged_encoding(name)
    many = [PROSE * (n % 7) + f"第{n}章" for n in range(2000)] + [PROSE * 2000, "", PROSE]
    assert sum(map(len, many)) > 4 * WORTH_A_THREAD

    counted = counts_of(many, encoding, ahead=ahead)

    assert counted == [len(encoding.encode_ordinary(text)) for text in many]


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_manuscript_that_holds_the_token_between_texts_is_plain_text(name: str) -> None:
    encoding = packaged_encoding(name)
    strange = ["a", f"她写下 {BETWEEN} 。", BETWEEN, "b"]

    assert counts_of(strange, encoding) == [len(encoding.encode_ordinary(t)) for t in strange]


def test_no_text_has_no_count() -> None:
    assert counts_of([], packaged_encoding("o200k_base")) == []
