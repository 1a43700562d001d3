"""What an inspection promises is true: with so many tokens more, a candidate is kept."""

from dataclasses import replace

from hypothesis import given, reject
from msgspec import UNSET, structs

from creonowd.context.fragment import Action, FragmentKind, Layer, Rule
from creonowd.context.inspection import InspectMeta, InspectResult, inspect
from creonowd.context.result import ModelTarget
from creonowd.context.stable_prefix import PrefixComparison
from creonowd.errors import DaemonError
from testing.sources import piece
from tests.context.worlds import World, assemble_world, profile_of, worlds

META = InspectMeta(debug_mode=True, requested_by="test", requested_at=0, what_if=False)
LONG = "他走路很慢，说话更慢。"


def inspect_world(world: World, more: int = 0) -> InspectResult:
    total = world.profile.total_budget_tokens + more
    richer = replace(world, profile=structs.replace(world.profile, total_budget_tokens=total))
    return inspect(assemble_world(richer), PrefixComparison(), ModelTarget(), META)


def promises_of(result: InspectResult) -> list[tuple[Layer, str, int]]:
    return [
        (layer, fragment.source_ref, fragment.fits_with)
        for layer in Layer
        for fragment in getattr(result.layers_detail, layer).fragments
        if fragment.fits_with is not UNSET
    ]


def is_kept(result: InspectResult, layer: Layer, ref: str) -> bool:
    found = getattr(result.layers_detail, layer).fragments
    whole = {Rule.SIZE_LIMIT, Rule.SKILL_WINDOW}
    kept = (f for f in found if f.action is Action.KEPT or f.rule in whole)
    return ref in {f.source_ref for f in kept}


@given(worlds())
def test_the_contents_of_the_layers_stand_in_the_prompt_as_they_are(world: World) -> None:
    try:
        assembly = assemble_world(world)
    except DaemonError:
        reject()
    details = inspect(assembly, PrefixComparison(), ModelTarget(), META).layers_detail

    prompt = assembly.system_prompt.prompt.text + assembly.user_content.text

    for layer in Layer:
        content = getattr(details, layer).content
        assert f"## {layer.title()}\n{content or '(none)' + chr(10)}#" in f"{prompt}#"


def test_the_content_of_rules_has_the_heading_of_the_constraints() -> None:
    rule = piece(Layer.RULES, "rules/style.md", "短句。")
    constraint = piece(Layer.RULES, "c", "不用感叹号", kind=FragmentKind.CONSTRAINT)

    content = inspect_world(World(rules=(rule, constraint))).layers_detail.rules.content

    assert content == (
        "### ref:rules/style.md\n短句。\n"
        "### ref:.creonow/rules/constraints.json\n[创作约束 - 不可违反]\n1. 不用感叹号\n"
    )


@given(worlds())
def test_with_as_many_tokens_more_as_it_says_a_candidate_is_kept(world: World) -> None:
    try:
        promises = promises_of(inspect_world(world))
        kept = [is_kept(inspect_world(world, more), layer, ref) for layer, ref, more in promises]
    except DaemonError:
        # Without a minimum for Immediate, settings may leave no room for what is never cut.
        reject()

    assert all(kept)


def test_a_character_over_the_rules_line_shows_what_raises_the_line() -> None:
    cast = tuple(
        piece(Layer.RULES, f"{n}.md", LONG * 8, kind=FragmentKind.ENTITY, names=(f"人{n}",))
        for n in range(20)
    )
    world = World(rules=cast)

    promises = promises_of(inspect_world(world))

    assert promises
    assert all(is_kept(inspect_world(world, more), layer, ref) for layer, ref, more in promises)


def test_a_chunk_is_promised_nothing_that_those_above_it_would_take() -> None:
    chunks = tuple(
        piece(Layer.RETRIEVED, f"{n}.md", f"{n}{LONG * length}", score=1 - n / 10)
        for n, length in enumerate((60, 100, 70, 80))
    )
    world = World(retrieved=chunks, profile=profile_of(total=1300))

    promises = promises_of(inspect_world(world))

    assert len(promises) > 1
    assert all(is_kept(inspect_world(world, more), layer, ref) for layer, ref, more in promises)


def test_nothing_is_promised_while_the_document_would_take_it() -> None:
    chunk = piece(Layer.RETRIEVED, "rag:1", LONG * 400, score=1.0)
    world = World(retrieved=(chunk,), text=f"{LONG}\n" * 5000, cursor=20_000)

    result = inspect_world(world)

    assert result.layers_detail.retrieved.truncated
    assert not promises_of(result)
