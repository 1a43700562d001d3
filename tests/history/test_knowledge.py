"""Which sentences of a conversation are worth keeping, and which of two statements holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.history.knowledge import (
    MOST_FACTS,
    Fact,
    best_facts,
    facts_in,
    intention_in,
    merge_facts,
    question_in,
    terms_of,
)

KEPT = [
    "The middleware must register after auth, never before.",
    "The root cause was a stale cache key.",
    "Anonymous users are limited by IP to 30 requests per minute.",
    "We will use Redis instead of Memcached.",
    "The key format is `rl:{user}:{minute}`.",
    "必须让林远在第五章之前不知道真相。",
    "结论：钥匙藏在渡口第三块石板下。",
    "周婆婆今年六十七岁，左手少一根指头。",
    "不要再用“突然”这个词。",
]
LEFT = [
    "Sure, will do!",
    "Thanks.",
    "Shall I go on with the next file?",
    "好的，收到。",
    "要不要继续？",
    "Let me have a look around.",
]


def texts(*said: str) -> list[str]:
    """Return what is kept when these are said one round after the other."""
    facts: tuple[Fact, ...] = ()
    for number, text in enumerate(said):
        facts = merge_facts(facts, facts_in(text, number, by_user=True))
    return best_facts(facts, MOST_FACTS)


@pytest.mark.parametrize("sentence", KEPT)
def test_a_sentence_that_decides_or_explains_is_kept(sentence: str) -> None:
    assert texts(f"Let me see. {sentence} Thanks.") == [sentence]


def test_small_talk_and_questions_are_not_kept() -> None:
    assert texts(*LEFT) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("The rate limit is 100 requests per minute.", "The rate limit is 60 requests per minute."),
        ("We will use Redis for the counter store.", "Use Postgres for the counter store instead."),
        ("第三章必须用第一人称叙述。", "第三章改为第三人称叙述。"),
        ("周婆婆必须是六十七岁。", "周婆婆的年龄更正为七十一岁。"),
    ],
)
def test_a_decision_that_was_corrected_is_gone(old: str, new: str) -> None:
    assert texts(old, "Fine.", new) == [new]


def test_decisions_about_different_things_stay_side_by_side() -> None:
    said = ("Errors must carry a code.", "Timestamps must be in milliseconds.")

    assert set(texts(*said)) == set(said)


def test_code_blocks_are_no_sentences() -> None:
    assert texts("```\nassert must_never_happen\n```\nThe port must be 8080.") == [
        "The port must be 8080."
    ]


def test_the_last_intention_and_the_open_question_are_found() -> None:
    said = "Tests pass. Next I will add the retry. Shall it back off?"

    assert intention_in(said) == "Next I will add the retry."
    assert question_in(said) == "Shall it back off?"
    assert question_in("All done.") == ""


@given(st.lists(st.text(max_size=200), max_size=30))
def test_any_text_gives_bounded_facts_that_are_quotes(said: list[str]) -> None:
    facts: tuple[Fact, ...] = ()
    for number, text in enumerate(said):
        found = facts_in(text, number, by_user=False)
        assert all(terms_of(fact.text) == fact.terms for fact in found)
        facts = merge_facts(facts, found)

    assert len(facts) <= MOST_FACTS
    assert len(best_facts(facts, 3)) <= 3
