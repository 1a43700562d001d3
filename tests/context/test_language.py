import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.language import LEAST_WORDS, ManuscriptLanguage, choose_language, count_words

HAN = "林远推开门，雨还在下，檐水滴在石阶上。"
LATIN = "The rain had not stopped since noon, and Anna waited by the door. "
ZH, EN = ManuscriptLanguage.CHINESE, ManuscriptLanguage.ENGLISH


def choose(document: str, *texts: str) -> ManuscriptLanguage:
    return choose_language(count_words(document), texts)


@pytest.mark.parametrize(
    ("document", "texts", "language"),
    [
        ("", [], ZH),
        ("123 —— ！", [], ZH),
        ("Chapter One", [], EN),
        (HAN, [], ZH),
        (LATIN * 20, [HAN * 50], EN),
        (HAN * 20, [LATIN * 50], ZH),
        ("Chapter 1", [HAN * 20], ZH),
        ("林远", [LATIN * 20], EN),
        (HAN * 10 + LATIN * 10, [LATIN * 20], EN),
        (HAN * 10 + LATIN * 10, [HAN * 20], ZH),
        ("𠀀𠀁" * 100, [], ZH),
        ("Ещё не вечер. " * 50, [], EN),
    ],
)
def test_the_manuscript_decides_and_where_it_is_unclear_the_projects_texts(
    document: str, texts: list[str], language: ManuscriptLanguage
) -> None:
    assert choose(document, *texts) is language


@given(st.integers(0, 2000), st.text(max_size=60), st.sampled_from([ZH, EN]))
def test_typing_in_a_manuscript_does_not_change_its_language(
    at: int, typed: str, language: ManuscriptLanguage
) -> None:
    """Whatever is typed at once, anywhere in a page of prose."""
    text = (HAN if language is ZH else LATIN) * 60

    assert choose(text[:at] + typed + text[at:]) is language


def test_only_the_beginning_is_looked_at() -> None:
    words = count_words(HAN * 1_000_000)

    assert LEAST_WORDS < words.han < 4000
