"""Which sentences of a conversation are worth keeping, and which of two statements holds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.history.knowledge import (
    MOST_FACTS,
    Fact,
    best_facts,
    facts_in,
    facts_of_round,
    intention_in,
    merge_facts,
    opening_of,
    question_in,
    topic_terms,
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
        assert all(topic_terms(fact.text) == fact.terms for fact in found)
        facts = merge_facts(facts, found)

    assert len(facts) <= MOST_FACTS
    assert len(best_facts(facts, 3)) <= 3


def after_rounds(*rounds: tuple[str, str]) -> list[str]:
    """Return what is kept after rounds of a request and a reply."""
    facts: tuple[Fact, ...] = ()
    for number, (request, reply) in enumerate(rounds):
        facts = merge_facts(facts, facts_of_round(request, [reply], number))
    return best_facts(facts, MOST_FACTS)


@pytest.mark.parametrize(
    ("old", "new", "gone", "kept"),
    [
        (
            ("The thief is the gardener, Mr Dale.", "He has a key to the shed."),
            ("I changed my mind about the thief. It should be the cook.", "Mr Dale is innocent."),
            "The thief is the gardener, Mr Dale.",
            "It should be the cook.",
        ),
        (
            ("Sessions last for 30 days.", "30 days, in `session_days`."),
            ("Security says 30 days is too long for sessions. 12 hours.", "Done."),
            "Sessions last for 30 days.",
            "Security says 30 days is too long for sessions.",
        ),
        (
            ("老周在第十二章被捕，然后死在狱里。", "好，老周死于狱中。"),
            ("老周的事我改主意了，被捕以后放出来，右眼瞎了。", "好的。"),
            "老周在第十二章被捕，然后死在狱里。",
            "老周的事我改主意了，被捕以后放出来，右眼瞎了。",
        ),
    ],
)
def test_a_change_of_mind_replaces_the_round_that_it_is_about(
    old: tuple[str, str], new: tuple[str, str], gone: str, kept: str
) -> None:
    other = ("The lamp must hang in the hall.", "It hangs there.")

    left = after_rounds(other, old, new)

    assert gone in after_rounds(other, old)
    assert gone not in left
    assert kept in left
    assert other[0] in left


def test_a_change_of_mind_leaves_rounds_that_share_a_word_in_passing() -> None:
    facts = (
        "The house in Falmouth has nine rooms, a cellar full of brandy and a cat called Moss.",
        "The cellar floods each spring because the drain under the garden wall is blocked.",
    )

    left = after_rounds(facts, ("I changed my mind: the dog is black. Moss fears it.", "Fine."))

    assert facts[0] in left
    assert facts[1] in left


def test_an_echo_in_the_same_round_does_not_replace_what_the_user_said() -> None:
    said = "Make it 600 per minute on the Pro plan, the free plan stays at 60."

    assert said in after_rounds((said, "So Pro 600 and free 60 instead of one number for all."))


def test_what_a_user_states_is_kept_and_a_mere_request_is_not() -> None:
    stated = "The detective is a retired surgeon who never drinks tea."

    assert texts(stated, "please format the list", "跑一下检查") == [stated]


def test_a_quotation_within_a_sentence_does_not_end_it() -> None:
    assert texts("对话不用「道」，一律用「说」。") == ["对话不用「道」，一律用「说」。"]
    assert texts("他必须说：「走吧。」然后必须离开渡口。") == [
        "他必须说：「走吧。」",
        "然后必须离开渡口。",
    ]


def test_one_failing_line_of_a_log_is_kept() -> None:
    log = "\n".join(f"2026-02-03T10:00:{n:02d}Z ERROR pool: timeout {n}" for n in range(50))

    assert texts(f"{log}\nThe pool must be larger.") == [
        "The pool must be larger.",
        "2026-02-03T10:00:00Z ERROR pool: timeout 0",
    ]


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert texts("```\nThe port must be 8080.") == ["The port must be 8080."]


def test_the_opening_of_a_request_leaves_out_the_greeting_and_is_bounded() -> None:
    assert opening_of("Hi! We need a limiter. It must be fast.", 30) == "We need a limiter."
    assert opening_of("Thanks!", 30) == "Thanks!"
    assert len(opening_of("x" * 5_000, 240)) <= 240


@pytest.mark.parametrize(
    "piece",
    ["a", "7", "([{", "a.", "a-", "a/", "```x\n", "「」", "以", "not ", "1,", "👩‍👩‍👧", "e\u0301"],
)
def test_hostile_texts_give_few_facts(piece: str) -> None:
    text = piece * (60_000 // len(piece))

    assert len(facts_of_round(text, [text], 0)) <= 4
