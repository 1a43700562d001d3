"""More than 64 000 tokens of rules, host chunks, selection and input are refused, cheaply."""

from dataclasses import replace

import pytest

from creonowd.context.budget import BudgetProfile, CountCorrection, apply_correction, budget_of
from creonowd.context.fragment import Fragment, FragmentKind, Layer, Span
from creonowd.context.text_tools import Memory, TextTools
from creonowd.errors import DaemonError, ErrorCode
from testing.sources import piece
from tests.context.worlds import (
    REDACTOR,
    SENTENCE,
    CountingTokenizer,
    World,
    assemble_world,
    profile_of,
    text_tools,
)
from tests.tokens.vocabulary import tokenizer

ROOMY = profile_of(64_000)


def long_text(tokens: int) -> str:
    each = tokenizer("o200k_base").count(SENTENCE)
    return "".join(f"{SENTENCE}\n" for _ in range(tokens // each))


def refusal(world: World, using: TextTools | None = None) -> DaemonError:
    with pytest.raises(DaemonError) as caught:
        assemble_world(world, using)
    assert caught.value.code is ErrorCode.CONTEXT_INPUT_TOO_LARGE
    return caught.value


def test_a_refusal_stays_a_refusal_while_settings_are_counted() -> None:
    """Large settings are counted meanwhile; what ends that must not look like their failure."""
    settings = tuple(piece(Layer.SETTINGS, f"{n}.md", long_text(400) + f"{n}") for n in range(60))
    world = World(settings=settings, additional_input=long_text(70_000), profile=ROOMY)

    error = refusal(world)

    assert error.details["limitTokens"] == 64_000


@pytest.mark.requirement("CE-088", "CE-098")
def test_90_000_tokens_of_input_are_too_many() -> None:
    error = refusal(World(additional_input=long_text(90_000), profile=ROOMY))

    assert error.details["limitTokens"] == 64_000
    assert [heavy["sourceRef"] for heavy in error.details["heaviest"]] == ["additionalInput"]


@pytest.mark.requirement("CE-075", "CE-076")
@pytest.mark.parametrize("layer", [Layer.SETTINGS, Layer.RETRIEVED, Layer.IMMEDIATE])
def test_what_hosts_send_may_be_small_alone_and_too_much_together(layer: Layer) -> None:
    chunks = tuple(
        piece(layer, f"host/{n}", f"{n}{long_text(9_000)}", score=0.5, hosted=True)
        for n in range(8)
    )

    error = refusal(World(profile=ROOMY).with_hosted(chunks))

    assert {heavy["sourceRef"] for heavy in error.details["heaviest"]} <= {
        chunk.source_ref for chunk in chunks
    }


@pytest.mark.requirement("CE-021")
def test_passages_and_settings_are_trimmed_not_refused() -> None:
    text = long_text(15_000)
    passages = tuple(piece(Layer.RETRIEVED, f"{n}", f"{n}{text}", score=0.5) for n in range(6))
    settings = tuple(piece(Layer.SETTINGS, f"{n}.md", f"{n}{text}") for n in range(6))

    assembly = assemble_world(World(retrieved=passages, settings=settings))

    assert assembly.tokens <= 6000


def test_a_selection_counts() -> None:
    text = long_text(70_000)

    error = refusal(World(text=text, selection=Span(0, len(text)), profile=ROOMY))

    assert error.details["heaviest"][0]["sourceRef"] == "selection"


def test_an_entity_is_weighed_before_it_is_cut_to_size() -> None:
    rules = (piece(Layer.RULES, "林远.md", long_text(70_000)),)

    refusal(World(rules=rules, profile=ROOMY))


@pytest.mark.parametrize("layer", [None, Layer.SETTINGS, Layer.RETRIEVED, Layer.IMMEDIATE])
def test_ten_megabytes_are_never_counted_to_learn_that_they_are_too_many(
    layer: Layer | None,
) -> None:
    counter = CountingTokenizer(tokenizer("o200k_base"))
    using = TextTools(counter, REDACTOR, Memory())
    text = "".join(f"{number}{SENTENCE}\n" for number in range(400_000))
    sent = () if layer is None else (piece(layer, "host", text, score=0.5, hosted=True),)
    world = World(additional_input="" if layer else text, profile=ROOMY).with_hosted(sent)

    refusal(world, using)

    assert counter.characters < 500_000


def test_many_small_chunks_are_counted_only_until_they_are_too_many() -> None:
    counter = CountingTokenizer(tokenizer("o200k_base"))
    texts = [f"{number}{SENTENCE * 10}" for number in range(4000)]
    chunks = tuple(
        piece(Layer.RETRIEVED, f"host/{n}", text, score=0.5, hosted=True)
        for n, text in enumerate(texts)
    )

    refusal(World(profile=ROOMY).with_hosted(chunks), TextTools(counter, REDACTOR, Memory()))

    assert counter.characters < sum(map(len, texts)) / 4


def test_what_hosts_send_for_the_settings_is_counted_once() -> None:
    counter = CountingTokenizer(tokenizer("o200k_base"))
    texts = ["".join(f"{n}.{m}{SENTENCE}\n" for m in range(50)) for n in range(20)]
    chunks = tuple(piece(Layer.SETTINGS, f"{n}", t, hosted=True) for n, t in enumerate(texts))

    assemble_world(World(profile=ROOMY).with_hosted(chunks), TextTools(counter, REDACTOR, Memory()))

    given = sum(map(len, texts))
    assert given <= counter.characters < 1.5 * given


@pytest.mark.requirement("CE-076")
def test_what_may_not_be_cut_must_fit_the_budget() -> None:
    rules: tuple[Fragment, ...] = (piece(Layer.RULES, "style.md", long_text(7_000)),)

    by_rules = refusal(World(rules=rules))
    by_input = refusal(World(additional_input=long_text(7_000)))

    assert by_rules.details["heaviest"] == "rules"
    assert by_rules.details["sources"][0]["sourceRef"] == "style.md"
    assert by_input.details["heaviest"] == "input"
    assert by_input.details["budgetTokens"] == 6000


@pytest.mark.parametrize("minimums", [(0, 0, 0, 0), (500, 200, 0, 2000), (500, 200, 1000, 4000)])
@pytest.mark.parametrize(("part", "layer"), [("style.md", "rules"), ("input", "immediate")])
def test_a_refusal_names_the_layer_and_a_budget_that_would_do(
    part: str, layer: str, minimums: tuple[int, int, int, int]
) -> None:
    """A larger budget lets more people and settings in, for whom there must be room as well."""
    people = tuple(
        piece(Layer.RULES, f"characters/{n}.md", long_text(100), kind=FragmentKind.ENTITY)
        for n in range(40)
    )
    settings = tuple(piece(Layer.SETTINGS, f"{n}.md", long_text(900)) for n in range(10))
    world = World(
        rules=people,
        settings=settings,
        additional_input=long_text(7_000),
        profile=profile_of(6000, minimums),
    )
    if part == "style.md":
        style = piece(Layer.RULES, part, long_text(7_000))
        world = replace(world, rules=(style, *people), additional_input="短句")

    error = refusal(world)
    raised = error.details["raiseTo"]
    enough = assemble_world(replace(world, profile=profile_of(raised, minimums)))

    assert error.details["layer"] == layer
    assert raised % 500 == 0
    assert enough.tokens <= raised


def test_the_budget_that_would_do_is_one_by_the_models_own_count() -> None:
    """What is divided by a correction must be raised by as much."""
    world = World(additional_input=long_text(7_000), profile=corrected(6000), factor=1.4)

    raised = refusal(world).details["raiseTo"]

    assert raised > 7_000 * 1.4
    assert assemble_world(replace(world, profile=corrected(raised))).tokens > 7_000


def corrected(total: int) -> BudgetProfile:
    learned = CountCorrection(factor=1.4, runs=3)
    return apply_correction(budget_of(profile_of(total)), learned).profile


def test_where_no_budget_would_do_none_is_named() -> None:
    rules = (piece(Layer.RULES, "style.md", long_text(63_900)),)

    error = refusal(World(rules=rules, additional_input=long_text(100)))

    assert error.details["neededTokens"] > 63_900
    assert "raiseTo" not in error.details


def test_a_refusal_says_what_each_part_needs() -> None:
    text = long_text(7_000)
    rules = (piece(Layer.RULES, "style.md", long_text(300)),)
    world = World(text=text, selection=Span(0, len(text)), rules=rules, task="润色：{{text}}")

    error = refusal(world)

    tokens = error.details["tokens"]
    assert error.details["heaviest"] == "selection"
    assert tokens["selection"] == tokenizer("o200k_base").count(text)
    assert 0 < tokens["task"] < 20
    assert tokens["input"] == tokens["settings"] == 0
    assert error.details["neededTokens"] == sum(tokens.values()) > error.details["budgetTokens"]
    assert [source["sourceRef"] for source in error.details["sources"]] == [
        "selection",
        "style.md",
        "skill:test",
    ]
    assert f"selection {tokens['selection']}" in error.message


def test_a_refusal_before_counting_has_the_lengths_of_each_part() -> None:
    text = long_text(70_000)
    chunks = (piece(Layer.RETRIEVED, "host/1", "x" * 10, score=0.5, hosted=True),)
    world = World(text=text, selection=Span(0, len(text)), additional_input="雨。")

    error = refusal(world.with_hosted(chunks))

    assert error.details["characters"] == {
        "retrieved": 10,
        "selection": len(text),
        "additionalInput": 2,
    }


@pytest.mark.requirement("CE-076")
def test_a_budget_that_cannot_hold_the_template_is_refused() -> None:
    refusal(World(profile=profile_of(20)))


def test_a_novel_in_one_file_is_no_input_too_large() -> None:
    text = long_text(200_000)

    assembly = assemble_world(replace(World(), text=text, cursor=len(text) // 2), text_tools())

    assert assembly.tokens <= 6000
