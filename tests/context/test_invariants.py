"""The promises of the engine, each for any project, document, cursor and budget."""

from dataclasses import replace

import msgspec
import pytest
import regex
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from creonowd.context.assemble import Assembly
from creonowd.context.fragment import Action, Fragment, Layer, Rule, rank_key
from creonowd.context.inspection import InspectMeta, inspect
from creonowd.context.language import CHINESE, heading, title
from creonowd.context.names import Mentions
from creonowd.context.result import AssembleResult, ModelTarget, answer, encode_result
from creonowd.context.stable_prefix import (
    Change,
    PrefixChange,
    PrefixComparison,
    first_change,
    mention_counts,
)
from creonowd.context.text_tools import TextTools
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.messages import encode
from testing.fuzz import scaled_examples
from tests.context.worlds import (
    REDACTOR,
    SECRET,
    World,
    assemble_world,
    moments,
    paragraphs,
    profile_of,
    prose,
    text_tools,
    worlds,
)
from tests.tokens.vocabulary import ENCODINGS, tokenizer

few = scaled_examples(0.5)
WINDOW_RULES = {Rule.WINDOW, Rule.SKILL_WINDOW}


@pytest.mark.requirement("CE-019")
@pytest.mark.parametrize("encoding", ENCODINGS)
@few
@given(world=worlds())
def test_the_token_count_is_that_of_the_prompt(encoding: str, world: World) -> None:
    result = result_of(world, encoding)

    assume(result is not None)
    assert result is not None
    assert result.token_count == tokenizer(encoding).count(result.prompt)
    assert result.prompt == result.system_prompt + result.user_content


@pytest.mark.requirement("CE-010", "CE-067")
@few
@given(world=worlds())
def test_the_prompt_never_exceeds_the_budget(world: World) -> None:
    result = result_of(world)

    if result is not None:
        assert result.token_count <= world.profile.total_budget_tokens


@pytest.mark.requirement("CN-006", "CN-045")
@few
@given(world=worlds())
def test_every_candidate_is_accounted_for_and_the_tokens_add_up(world: World) -> None:
    result = result_of(world)

    assume(result is not None)
    assert result is not None
    evidence = result.trim_evidence
    for given_ in (world.rules, world.settings, world.retrieved, world.notes):
        offered = sorted(fragment.source_ref for fragment in given_ if fragment.text.strip())
        assert sorted(e.source_ref for e in evidence if e.source_ref in offered) == offered
    for layer in Layer:
        layer_tokens = getattr(result.layers, layer).tokens
        assert layer_tokens == sum(e.after_tokens for e in evidence if e.layer is layer)
    layers = sum(getattr(result.layers, layer).tokens for layer in Layer)
    assert layers + result.fixed_tokens == result.token_count
    for entry in evidence:
        kept = entry.action is Action.KEPT
        assert kept <= (entry.before_chars == entry.after_chars)
        assert (entry.action is Action.DROPPED) == (entry.after_tokens == 0)


@pytest.mark.requirement("CN-007", "CN-034", "CE-030", "CN-037")
@few
@given(world=worlds(), data=st.data())
def test_nothing_dynamic_reaches_the_stable_prefix(world: World, data: st.DataObject) -> None:
    """Over the Rules line it may matter whom the document mentions and about how often; no more."""
    other = replace(
        world,
        **data.draw(moments(data.draw(prose))),
        retrieved=(),
        notes=(),
        surrounding=None if world.surrounding is None else 77,
        task="别的任务",
    )

    one, two = assemble_or_none(world), assemble_or_none(other)

    assume(one is not None and two is not None)
    assert one is not None
    assert two is not None
    if not one.system_prompt.rules_over or mentions_of(world) == mentions_of(other):
        assert one.system_prompt.prompt == two.system_prompt.prompt
        assert one.system_prompt.hash == two.system_prompt.hash


@pytest.mark.requirement("CN-032", "CN-038")
@few
@given(world=worlds(), data=st.data())
def test_a_change_of_an_injected_source_changes_the_hash_and_is_named(
    world: World, data: st.DataObject
) -> None:
    roomy = replace(world, profile=profile_of(60_000, ratios=(1.0, 0.1, 0.1, 0.1)))
    sources = [f for f in (*world.rules, *world.settings) if f.text.strip()]
    assume(sources)
    chosen = data.draw(st.sampled_from(sources))
    changed = structs.replace(chosen, text=data.draw(paragraphs))
    assume(changed.text.strip() and redacted_text(changed.text) != redacted_text(chosen.text))

    before, after = assemble_world(roomy), assemble_world(with_fragment(roomy, chosen, changed))

    assert before.system_prompt.hash != after.system_prompt.hash
    change = first_change(before.system_prompt.digest, after.system_prompt.digest)
    assert change == PrefixChange(source_ref=chosen.source_ref, change=Change.CHANGED)


@pytest.mark.requirement("SK-035")
@few
@given(world=worlds(), data=st.data())
def test_the_order_of_arrival_does_not_matter(world: World, data: st.DataObject) -> None:
    shuffled = replace(
        world,
        rules=tuple(data.draw(st.permutations(world.rules))),
        settings=tuple(data.draw(st.permutations(world.settings))),
        retrieved=tuple(data.draw(st.permutations(world.retrieved))),
        notes=tuple(data.draw(st.permutations(world.notes))),
    )

    assert result_of(world) == result_of(shuffled)


@pytest.mark.requirement("CE-101")
@few
@given(world=worlds())
def test_a_warm_memory_gives_the_same_as_a_cold_one(world: World) -> None:
    using = text_tools()

    first, second = assemble_or_none(world, using=using), assemble_or_none(world, using=using)

    if first is not None and second is not None:
        assert answer_of(first) == answer_of(second)


@few
@given(world=worlds())
def test_what_was_encoded_before_is_sent_byte_by_byte_as_it_is_now(world: World) -> None:
    assembly = assemble_or_none(world)

    if assembly is not None:
        encoded = encode_result(assembly, ModelTarget()).result(PrefixComparison())
        assert encode(encoded) == encode(answer_of(assembly))


@pytest.mark.requirement("CN-032")
@few
@given(world=worlds(), blanks=st.sampled_from(("  ", " \t", "　　", "\n\n\n", " \n")))
def test_what_is_kept_stands_in_the_prompt_letter_by_letter(world: World, blanks: str) -> None:
    """Only secrets change: no blank is trimmed, no space folded, no letter composed."""
    odd = [
        structs.replace(fragment, text=f"{blanks}e\u0301{blanks}{fragment.text}{blanks}")
        for fragment in (*world.settings, *world.retrieved)
    ]
    spaced = replace(
        world,
        settings=tuple(fragment for fragment in odd if fragment.layer is Layer.SETTINGS),
        retrieved=tuple(fragment for fragment in odd if fragment.layer is Layer.RETRIEVED),
    )

    result = result_of(spaced)

    assume(result is not None)
    assert result is not None
    kept = {e.source_ref for e in result.trim_evidence if e.action is Action.KEPT}
    for fragment in odd:
        if fragment.source_ref in kept:
            assert (
                f"{heading(fragment.source_ref)}{redacted_text(fragment.text)}\n" in result.prompt
            )


@pytest.mark.requirement("CE-020")
@few
@given(world=worlds())
def test_with_room_for_everything_nothing_is_cut(world: World) -> None:
    roomy = profile_of(60_000, ratios=(1.0, 0.1, 0.1, 0.1))
    result = result_of(replace(world, notes=(), profile=roomy))

    assert result is not None
    assert result.budget.estimate.total_tokens < 60_000
    cut = [e for e in result.trim_evidence if e.action is not Action.KEPT]
    assert {entry.rule for entry in cut} <= {Rule.DUPLICATE, Rule.SKILL_WINDOW}
    assert not any(getattr(result.layers, layer).truncated for layer in Layer)


@pytest.mark.requirement("CN-044", "CE-021", "CE-003")
@few
@given(world=worlds(), promised=st.tuples(st.integers(0, 400), st.integers(0, 400)))
def test_settings_yield_to_what_the_dynamic_layers_are_promised(
    world: World, promised: tuple[int, int]
) -> None:
    total = world.profile.total_budget_tokens
    assembly = assemble_or_none(replace(world, profile=profile_of(total, (0, 0, *promised))))

    assume(assembly is not None)
    assert assembly is not None
    left = total - assembly.system_prompt.rules.tokens - sum(promised)
    assert assembly.system_prompt.settings.tokens <= max(0, left)


@pytest.mark.requirement("CN-044", "CE-007", "CE-021")
@few
@given(world=worlds())
def test_retrieved_yields_to_the_document(world: World) -> None:
    """Without a bound of its own the window holds its share only, and takes what chunks leave."""
    assembly, alone = assemble_or_none(world), assemble_or_none(replace(world, retrieved=()))

    assume(assembly is not None and alone is not None)
    assert assembly is not None
    assert alone is not None
    if world.surrounding is not None:
        assert assembly.layers[Layer.IMMEDIATE].decisions == alone.layers[Layer.IMMEDIATE].decisions
        return
    share = assembly.plan.allowances.share(Layer.IMMEDIATE)
    window, whole = window_tokens(assembly), window_tokens(alone)
    assert window <= whole
    if window < whole:
        # What a window on a grid leaves free may be filled with chunks: a step of rare letters.
        step = 4 * assembly.plan.step
        assert assembly.layers[Layer.RETRIEVED].tokens > 0
        assert window >= min(whole, share) - step


@few
@given(world=worlds())
def test_what_lies_after_the_cursor_yields_to_what_lies_before(world: World) -> None:
    text = world.text.replace(SECRET, "钥匙")
    here = replace(world, text=text, selection=None, cursor=min(world.cursor, len(text)))
    cursor = cursor_of(here)

    assembly, ended = (
        assemble_or_none(here),
        assemble_or_none(replace(here, text=here.text[:cursor], cursor=cursor)),
    )

    if assembly is not None and ended is not None:
        assert text_before(assembly).endswith(text_before(ended))
        if len(text_before(assembly)) > len(text_before(ended)):
            minimum = assembly.plan.allowances.minimum(Layer.IMMEDIATE)
            assert ended.layers[Layer.IMMEDIATE].tokens < minimum


@few
@given(world=worlds())
def test_the_window_is_what_lies_next_to_the_cursor_and_splits_no_grapheme(world: World) -> None:
    plain = replace(world, text=world.text.replace(SECRET, "钥匙"), selection=None)
    assembly = assemble_or_none(plain)
    assume(assembly is not None)
    assert assembly is not None
    cursor = cursor_of(plain)
    before = redacted_text(plain.text[:cursor])
    after = redacted_text(plain.text[cursor:])
    assume(before + after == redacted_text(plain.text))

    near, beyond = text_before(assembly), text_after(assembly)

    assert before.endswith(near)
    assert after.startswith(beyond)
    boundaries = {0, *(match.end() for match in regex.finditer(r"\X", before + after))}
    assert len(before) - len(near) in boundaries
    assert len(before) + len(beyond) in boundaries


@few
@given(world=worlds())
def test_additional_input_is_never_cut(world: World) -> None:
    result = result_of(world)

    if result is not None:
        assert redacted_text(world.additional_input) in result.user_content


@pytest.mark.requirement("CE-016")
@few
@given(world=worlds())
def test_no_dropped_chunk_would_have_fitted_beside_better_ones(world: World) -> None:
    assembly = assemble_or_none(world)
    assume(assembly is not None)
    assert assembly is not None
    by_ref = {fragment.source_ref: fragment for fragment in world.retrieved}
    ranked = sorted(
        assembly.layers[Layer.RETRIEVED].decisions,
        key=lambda decision: rank_key(by_ref[decision.evidence.source_ref]),
    )
    kept = sum(decision.tokens for decision in assembly.layers[Layer.RETRIEVED].decisions)
    nothing = text_tools().count(title(Layer.RETRIEVED, empty=not kept))
    beside = (
        assembly.tokens - kept - nothing + text_tools().count(title(Layer.RETRIEVED, empty=False))
    )

    for decision in ranked:
        if decision.is_kept:
            beside += decision.tokens
        elif decision.evidence.rule is Rule.SCORE:
            assert beside + decision.evidence.before_tokens > world.profile.total_budget_tokens


@pytest.mark.requirement("CE-015")
@few
@given(world=worlds(), more=st.integers(1, 2000))
def test_a_larger_budget_never_shrinks_settings(world: World, more: int) -> None:
    total = world.profile.total_budget_tokens
    ratios = (1.0, 0.1, 0.1, 0.1)
    small = replace(world, profile=profile_of(total, ratios=ratios))
    large = replace(world, profile=profile_of(total + more, ratios=ratios))

    one, two = assemble_or_none(small), assemble_or_none(large)

    assume(one is not None and two is not None)
    assert one is not None
    assert two is not None
    assume(one.system_prompt.up_to_rules == two.system_prompt.up_to_rules)
    for less, bigger in zip(
        one.system_prompt.settings.decisions, two.system_prompt.settings.decisions, strict=True
    ):
        assert less.tokens <= bigger.tokens


@pytest.mark.requirement("CN-053")
@few
@given(world=worlds())
def test_no_secret_survives_anywhere(world: World) -> None:
    assembly = assemble_or_none(world)
    assume(assembly is not None)
    assert assembly is not None
    meta = InspectMeta(debug_mode=True, requested_by="test", requested_at=0, what_if=False)

    shown = [answer_of(assembly), inspect(assembly, PrefixComparison(), ModelTarget(), meta)]

    for result in shown:
        assert SECRET[:12] not in msgspec.json.encode(result).decode()
    assert not REDACTOR.find(answer_of(assembly).prompt)


def result_of(world: World, encoding: str = "o200k_base") -> AssembleResult | None:
    """The answer, or None where what may not be cut does not fit."""
    assembly = assemble_or_none(world, encoding)
    return None if assembly is None else answer_of(assembly)


def assemble_or_none(
    world: World, encoding: str = "o200k_base", using: TextTools | None = None
) -> Assembly | None:
    try:
        return assemble_world(world, using or text_tools(tokenizer(encoding)))
    except DaemonError as error:
        if error.code is ErrorCode.CONTEXT_INPUT_TOO_LARGE:
            return None
        raise


def answer_of(assembly: Assembly) -> AssembleResult:
    return answer(assembly, PrefixComparison(), ModelTarget())


def window_tokens(assembly: Assembly) -> int:
    decisions = assembly.layers[Layer.IMMEDIATE].decisions
    return sum(d.tokens for d in decisions if d.evidence.rule in WINDOW_RULES)


def cursor_of(world: World) -> int:
    document = world.plan().document
    assert document is not None
    return document.cursor


def mentions_of(world: World) -> tuple[tuple[str, int], ...]:
    return mention_counts(world.rules, world.text, Mentions())


def redacted_text(text: str) -> str:
    return REDACTOR.redact(text.replace("\r\n", "\n")).text


def with_fragment(world: World, old: Fragment, new: Fragment) -> World:
    return replace(
        world,
        rules=tuple(new if f is old else f for f in world.rules),
        settings=tuple(new if f is old else f for f in world.settings),
    )


def text_before(assembly: Assembly) -> str:
    return _under(assembly, heading("chapters/07.md"), CHINESE.heading_after("chapters/07.md"))


def text_after(assembly: Assembly) -> str:
    return _under(assembly, CHINESE.heading_after("chapters/07.md"), "\0")


def _under(assembly: Assembly, start: str, end: str) -> str:
    for decision in assembly.layers[Layer.IMMEDIATE].decisions:
        if decision.evidence.rule in WINDOW_RULES and start in decision.rendered:
            shown = decision.rendered.partition("### 以上摘自 ")[0]
            return shown.partition(start)[2].partition(end)[0][:-1]
    return ""
