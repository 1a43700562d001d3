import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.plan import ContextRules
from creonowd.skills.skill import RULE_KEYS, canonical_rules, check_rules, check_rules_json

DECLARATIONS = st.fixed_dictionaries(
    {},
    optional={
        "surrounding": st.integers(0, 20_000),
        "recent_summary": st.integers(0, 10),
        **{key: st.booleans() for key in RULE_KEYS if key not in {"surrounding", "recent_summary"}},
    },
)


@pytest.mark.requirement("SK-009", "SK-010", "SK-011", "SK-012", "SK-013", "SK-014", "SK-015")
def test_everything_that_is_not_declared_is_off() -> None:
    checked = check_rules({})

    assert checked.faults == ()
    assert json.loads(canonical_rules(checked.rules)) == {
        "surrounding": 0,
        "user_preferences": False,
        "style_guide": False,
        "characters": False,
        "outline": False,
        "recent_summary": 0,
        "knowledge_graph": False,
        "retrieval": False,
        "synopsis": False,
    }


@pytest.mark.requirement("SK-018", "SK-030")
@given(DECLARATIONS, st.randoms())
def test_rules_have_one_spelling_whatever_the_order_of_their_keys(
    declared: dict[str, Any], dice: Any
) -> None:
    pairs = list(declared.items())
    dice.shuffle(pairs)

    spelled = canonical_rules(check_rules(dict(pairs)).rules)

    assert spelled == canonical_rules(check_rules(declared).rules)
    assert tuple(json.loads(spelled)) == RULE_KEYS
    assert " " not in spelled
    assert check_rules_json(spelled, "k").rules == check_rules(declared).rules


@pytest.mark.requirement("SK-016")
@pytest.mark.parametrize("value", [None, [], "surrounding: 5", 5, True])
def test_rules_must_be_a_mapping(value: Any) -> None:
    (fault,) = check_rules(value).faults

    assert fault.key == "context_rules"
    assert "must be a mapping" in fault.message


@pytest.mark.requirement("SK-017")
@pytest.mark.parametrize("key", ["surrounding", "recent_summary"])
@pytest.mark.parametrize(
    "value", [-1, 20_001, True, False, 1.0, float("inf"), float("nan"), "5", None, [1]]
)
def test_counts_are_whole_numbers_within_their_limits(key: str, value: Any) -> None:
    checked = check_rules({key: value})

    assert [fault.key for fault in checked.faults] == [f"context_rules.{key}"]
    assert checked.rules == ContextRules()


def test_each_count_has_its_own_limit() -> None:
    assert check_rules({"surrounding": 20_000, "recent_summary": 10}).faults == ()
    assert check_rules({"recent_summary": 11}).faults[0].message == (
        "`recent_summary` must be from 0 to 10, not 11."
    )


@pytest.mark.parametrize(
    "key", [key for key in RULE_KEYS if key not in {"surrounding", "recent_summary", "synopsis"}]
)
@pytest.mark.parametrize("value", [0, 1, "yes", "true", None, 1.5])
def test_flags_are_true_or_false_and_nothing_else(key: str, value: Any) -> None:
    (fault,) = check_rules({key: value}).faults

    assert fault.key == f"context_rules.{key}"
    assert "must be true" in fault.message


@pytest.mark.parametrize("value", [True, False, 0, 1, 40, 1000])
def test_the_synopsis_is_a_flag_or_a_number_of_chapters(value: Any) -> None:
    checked = check_rules({"synopsis": value})

    assert checked.faults == ()
    assert checked.rules.synopsis is value


@pytest.mark.parametrize("value", [-1, 1001, 1.5, "all", None, []])
def test_any_other_synopsis_is_a_fault(value: Any) -> None:
    (fault,) = check_rules({"synopsis": value}).faults

    assert fault.key == "context_rules.synopsis"


@pytest.mark.requirement("SK-019")
@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("surounding", "surrounding"),
        ("userPreferences", "user_preferences"),
        ("style-guide", "style_guide"),
        ("character", "characters"),
        ("recent_summaries", "recent_summary"),
    ],
)
def test_an_unknown_key_is_named_with_the_nearest_known_one(typed: str, meant: str) -> None:
    (fault,) = check_rules({typed: True}).faults

    assert fault.key == f"context_rules.{typed}"
    assert fault.message == f"`{typed}` is not known; did you mean `{meant}`?"


def test_an_unknown_key_that_is_near_nothing_lists_what_is_known() -> None:
    (fault,) = check_rules({"zzz": 1}).faults

    assert "known are surrounding, user_preferences" in fault.message


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not valid JSON"),
        ('{"surrounding":1,"surrounding":2}', "stands twice"),
        ("[" * 100_000, "nested too deeply"),
        ("[]", "must be a mapping"),
        (5, "must be JSON in a string"),
    ],
)
def test_json_that_is_no_set_of_rules_is_a_fault(text: Any, reason: str) -> None:
    (fault,) = check_rules_json(text, "metadata.creonow.context_rules").faults

    assert fault.key == "metadata.creonow.context_rules"
    assert reason in fault.message


def test_the_wire_spells_rules_in_its_own_way() -> None:
    assert "userPreferences" in msgspec.to_builtins(ContextRules())


def test_retrieval_may_ask_for_all() -> None:
    checked = check_rules({"retrieval": "all"})

    assert checked.faults == ()
    assert checked.rules.retrieval == "all"
    assert '"retrieval":"all"' in canonical_rules(checked.rules)
    assert check_rules({"outline": "all"}).faults
