"""What a text has at most for Claude, whose table is not public.

`claude_counts.json` holds texts and the counts that PyPI's ctok 1.3.0 gave for them; each begins
with `#` and ends in a newline, as units do. `scripts/claude_costs.py --count` makes such counts.
"""

import json
import random
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.tokens.tables import BOUNDS
from tests.tokens.vocabulary import PIECES, texts, tokenizer

RECORDED = json.loads((Path(__file__).parent / "claude_counts.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_is_never_under_the_reference(name: str) -> None:
    counter = tokenizer(name)

    under = [row["text"] for row in RECORDED if counter.count(row["text"]) < row[name]]

    assert len(RECORDED) > 500
    assert not under


@pytest.mark.parametrize("name", BOUNDS)
def test_a_bound_of_prose_is_near_the_reference(name: str) -> None:
    """The first 120 texts are passages of two novels."""
    counter, prose = tokenizer(name), RECORDED[:120]

    bound = sum(counter.count(row["text"]) for row in prose)

    assert bound <= 1.05 * sum(row[name] for row in prose)


@pytest.mark.parametrize("name", BOUNDS)
def test_bounds_of_units_add_up_to_that_of_the_prompt(name: str) -> None:
    counter, chance = tokenizer(name), random.Random(24)

    for _ in range(1000):
        units = [
            "#" + "".join(chance.choices(PIECES, k=chance.randrange(40))) + "\n" for _ in range(3)
        ]
        assert counter.count("".join(units)) == sum(map(counter.count, units)), units


@given(st.sampled_from(sorted(BOUNDS)), st.lists(texts, max_size=8))
def test_a_bound_is_no_less_than_the_count_it_rests_on(name: str, many: list[str]) -> None:
    counter = tokenizer(name)

    with counter.begin_count(many) as counts:
        bounds = counts.result()

    assert bounds == [counter.count(text) for text in many]
    assert all(
        bound >= tokenizer("o200k_base").count(unicodedata.normalize("NFC", text))
        for bound, text in zip(bounds, many, strict=True)
    )


SURROUNDINGS = (
    ("#3 words\n", 5, 5),
    ("#的 words\n", 5, 5),
    ("#word，word\n", 5, 5),
    ("#word ，word\n", 6, 6),
    ("#inter\u200bnational\n", 5, 6),
    ("#inter\x01national\n", 3, 3),
    ("#don’t 'tis\n", 8, 9),
    ("#ShOWN shown SHOWN\n", 9, 14),
    ("#ЖéЖ。」\n", 11, 11),
    ("#e\u0301te\u0301\n", 3, 3),
)
"""Texts in which a token costs more than by itself, with the counts of ctok."""


@pytest.mark.parametrize(("text", "older", "newer"), SURROUNDINGS)
def test_a_token_pays_for_what_its_neighbours_make_of_it(text: str, older: int, newer: int) -> None:
    assert tokenizer("claude_v3").count(text) >= older
    assert tokenizer("claude_v4_7").count(text) >= newer


@pytest.mark.parametrize("name", BOUNDS)
def test_an_endless_run_has_a_bound_too(name: str) -> None:
    text = "前" + " " * 1_000_000 + "后"

    assert 1_000_000 < tokenizer(name).count(text) <= 1_000_010
