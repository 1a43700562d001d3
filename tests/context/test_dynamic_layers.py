"""Chunks by falling score, as long as they fit."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from creonowd.context.assemble import Assembly, compose
from creonowd.context.budget import BudgetKind, usual_profile
from creonowd.context.candidates import Decision, Unit
from creonowd.context.dynamic_layers import RankedChunks, RetrievedRoom, trim_chapters
from creonowd.context.fragment import Fragment, FragmentKind, Layer, Place, Rule, Span
from creonowd.context.plan import CHUNK_LIMIT, FAR_CHAPTERS, NEAR_CHAPTERS
from creonowd.text import common_prefix
from testing.novels import SECRET
from tests.context.worlds import World, assemble_world, profile_of, text_tools, unit_of

USING = text_tools()

LONG_CHAPTER = "".join(f"第{n}段，林远推开门，雨还在下，檐水滴在石阶上。\n" for n in range(900))

CHOSEN = "苏晴没有抬头，只问了一句。"


def chunk(name: str, score: float, length: int = 3, span: Span | None = None) -> Unit:
    fragment = Fragment(
        layer=Layer.RETRIEVED,
        source="rag",
        source_ref=name,
        text=f"{name}：" + "前文里林远说过的话。" * length,
        score=score,
        place=Place(0, name),
        span=span,
    )
    return unit_of(fragment, USING)


def kept(units: list[Unit], room: int, shown: Span | None = None) -> list[str]:
    return [
        v.evidence.source_ref
        for v in RankedChunks(units).trim(RetrievedRoom(room), shown).decisions
        if v.is_kept
    ]


@pytest.mark.requirement("CE-016", "CE-004")
def test_the_best_stay_and_stand_in_the_order_of_the_documents() -> None:
    units = [chunk("c", 0.9), chunk("a", 0.8), chunk("b", 0.1)]

    assert kept(units, units[0].tokens + units[1].tokens) == ["a", "c"]


def test_one_that_is_too_big_does_not_stand_in_the_way_of_a_smaller_one() -> None:
    units = [chunk("a", 0.9), chunk("b", 0.8, length=50), chunk("c", 0.1)]

    assert kept(units, units[0].tokens + units[2].tokens) == ["a", "c"]


def test_what_fills_a_gap_stands_behind_the_others() -> None:
    """As the gap gets smaller others fill it; what stands before them stays where it is."""
    units = [chunk("b", 0.9), chunk("m", 0.8, length=50), chunk("a", 0.2, 2), chunk("c", 0.1, 1)]
    best, _, larger, smaller = units

    assert kept(units, best.tokens + larger.tokens) == ["b", "a"]
    assert kept(units, best.tokens + larger.tokens - 1) == ["b", "c"]
    assert kept(units, best.tokens + smaller.tokens - 1) == ["b"]


def test_without_a_gap_the_order_is_that_of_the_documents() -> None:
    units = [chunk("b", 0.9), chunk("c", 0.8), chunk("a", 0.1)]

    assert kept(units, sum(unit.tokens for unit in units)) == ["a", "b", "c"]


def test_ties_break_by_path() -> None:
    units = [chunk("b", 0.5), chunk("a", 0.5)]

    assert kept(units, units[0].tokens) == ["a"]


def test_more_chunks_than_the_limit_are_left_out_by_rank() -> None:
    units = [chunk(f"{n:03}", n / 1000, length=1) for n in range(CHUNK_LIMIT + 50)]

    chosen = RankedChunks(units).trim(RetrievedRoom(1_000_000), None).decisions

    dropped = [v.evidence.source_ref for v in chosen if not v.is_kept]
    assert dropped == [f"{n:03}" for n in range(50)]
    assert {v.evidence.rule for v in chosen if not v.is_kept} == {Rule.CHUNK_LIMIT}


def test_the_same_text_is_shown_once() -> None:
    one = chunk("a", 0.5)
    twin = unit_of(
        Fragment(layer=Layer.RETRIEVED, source="rag", source_ref="b", text=one.text, score=0.9),
        USING,
    )

    chosen = RankedChunks([one, twin]).trim(RetrievedRoom(1_000_000), None).decisions

    rules = {v.evidence.source_ref: v.evidence.rule for v in chosen}
    assert rules == {"a": Rule.DUPLICATE, "b": Rule.SCORE}


def test_what_the_window_shows_is_left_out() -> None:
    units = [chunk("a", 0.9, span=Span(0, 100)), chunk("b", 0.8, span=Span(100, 200))]

    assert kept(units, 1_000_000, shown=Span(50, 100)) == ["b"]


def test_the_missing_room_is_reported() -> None:
    unit = chunk("a", 0.9)

    trimmed = RankedChunks([unit]).trim(RetrievedRoom(unit.tokens - 4), None)

    (decision,) = trimmed.decisions
    assert decision.wanted == trimmed.room + 4


def passages(count: int, length: int = 12) -> tuple[Fragment, ...]:
    return tuple(chunk(f"{n:02}", 1 - n / 100, length).fragment for n in range(count))


def tokens(assembly: Assembly, layer: Layer) -> int:
    return assembly.layers[layer].tokens


@pytest.mark.requirement("CE-007")
@pytest.mark.parametrize("cursor", [0, 9000, len(LONG_CHAPTER)])
def test_the_general_profile_leaves_passages_their_room_on_a_long_chapter(cursor: int) -> None:
    world = World(text=LONG_CHAPTER, cursor=cursor, retrieved=passages(40))

    assembly = assemble_world(world, USING)

    step = assembly.plan.step
    assert tokens(assembly, Layer.RETRIEVED) > 2000
    assert "前文里林远说过的话。" in assembly.user_content.text
    assert 3000 - step < tokens(assembly, Layer.IMMEDIATE) < 3000 + step
    assert assembly.tokens > 6000 - step
    assert not assembly.warnings


def test_what_passages_leave_goes_to_the_general_window() -> None:
    alone = assemble_world(World(text=LONG_CHAPTER, cursor=9000), USING)
    with_few = assemble_world(World(text=LONG_CHAPTER, cursor=9000, retrieved=passages(3)), USING)

    spare = tokens(alone, Layer.IMMEDIATE) - tokens(with_few, Layer.IMMEDIATE)

    assert with_few.layers[Layer.RETRIEVED].chunks == 3
    assert 0 < spare <= tokens(with_few, Layer.RETRIEVED) + alone.plan.step


def test_passages_stand_still_while_the_general_window_moves_on() -> None:
    """What only fills the rest of a step stands last, and the passages before it as they were."""
    world = World(text=LONG_CHAPTER, retrieved=passages(40))
    shown = [
        assemble_world(replace(world, cursor=cursor), USING).user_content.text
        for cursor in range(9000, 9750, 30)
    ]

    common = min(common_prefix(shown[0].encode(), other.encode()) for other in shown)

    assert USING.count(shown[0].encode()[:common].decode(errors="ignore")) > 2000


def test_a_passage_that_the_window_reaches_in_the_end_is_shown_once() -> None:
    inside = structs.replace(passages(1)[0], span=Span(5500, 5700), text=LONG_CHAPTER[5500:5700])
    world = World(text=LONG_CHAPTER, cursor=9000, retrieved=(inside,))

    assembly = assemble_world(world, USING)

    assert assembly.user_content.text.count(LONG_CHAPTER[5520:5680]) == 1
    assert assembly.tokens <= 6000


@pytest.mark.requirement("SK-022", "SK-023", "SK-026")
@pytest.mark.parametrize("target", [1500, 2500, 3500])
def test_passages_fill_the_prompt_up_to_the_target_of_the_skill(target: int) -> None:
    world = World(text=LONG_CHAPTER, cursor=9000, surrounding=500, retrieved=passages(60))
    plan, gathered = world.plan(), world.gathered()
    aimed = structs.replace(plan, skill=structs.replace(plan.skill, target_tokens=target))

    full, assembly = compose(plan, gathered, USING), compose(aimed, gathered, USING)

    assert full.tokens > 5700
    assert target - 300 < assembly.tokens <= target
    left_out = [d for d in assembly.layers[Layer.RETRIEVED].decisions if not d.is_kept]
    assert {(d.evidence.rule, assembly.fits_with(d)) for d in left_out} == {(Rule.TARGET, None)}
    assert assembly.layers[Layer.IMMEDIATE] == full.layers[Layer.IMMEDIATE]


def test_nothing_but_passages_is_cut_for_a_target() -> None:
    settings = chunk("设定", 1.0, length=150).fragment
    world = World(
        text=LONG_CHAPTER,
        cursor=9000,
        surrounding=2000,
        retrieved=passages(40),
        settings=(structs.replace(settings, layer=Layer.SETTINGS),),
    )
    plan = world.plan()
    aimed = structs.replace(plan, skill=structs.replace(plan.skill, target_tokens=1500))

    full, assembly = assemble_world(world, USING), compose(aimed, world.gathered(), USING)

    assert assembly.tokens > 1500
    assert tokens(assembly, Layer.RETRIEVED) == 0
    assert assembly.system_prompt == full.system_prompt
    assert assembly.layers[Layer.IMMEDIATE] == full.layers[Layer.IMMEDIATE]


def test_a_target_leaves_retrieved_the_minimum_that_the_budget_promises() -> None:
    profile = profile_of(6000, (0, 0, 600, 0))
    world = World(
        text=LONG_CHAPTER, cursor=9000, surrounding=2000, retrieved=passages(40), profile=profile
    )
    plan = world.plan()
    aimed = structs.replace(plan, skill=structs.replace(plan.skill, target_tokens=1500))

    assembly = compose(aimed, world.gathered(), USING)

    assert 400 < tokens(assembly, Layer.RETRIEVED) <= 600


def test_what_is_pinned_comes_in_although_the_prompt_has_reached_its_target() -> None:
    """Also beside answers to the last sentence, which have a room of their own."""
    plain = passages(40)
    late = structs.replace(plain[0], is_allusion=True)
    wanted = structs.replace(plain[-1], pinned=True)
    world = World(
        text=LONG_CHAPTER,
        cursor=9000,
        surrounding=2000,
        retrieved=(late, *plain[1:-1], wanted),
    )
    plan = world.plan()
    aimed = structs.replace(plan, skill=structs.replace(plan.skill, target_tokens=1500))

    assembly = compose(aimed, world.gathered(), USING)

    kept = [d for d in assembly.layers[Layer.RETRIEVED].decisions if d.is_kept]
    assert [d.evidence.source_ref for d in kept] == [wanted.source_ref]
    assert assembly.tokens <= 6000


def immediate(assembly: Assembly) -> dict[str, tuple[str, int, str]]:
    return {
        d.evidence.source_ref: (d.text, d.tokens, d.rendered)
        for d in assembly.layers[Layer.IMMEDIATE].decisions
    }


def test_what_the_task_shows_is_counted_where_it_comes_from() -> None:
    text = f"林远推开门。{CHOSEN}"
    world = World(
        text=text,
        selection=Span(6, len(text)),
        additional_input=f"改短，去掉 {SECRET}",
        surrounding=0,
        task="润色《{{title}}》：{{text}}\n要求：{{instruction}}\n只写 {{text}}。",
    )

    assembly = assemble_world(world)

    found = immediate(assembly)
    assert list(found) == ["selection", "additionalInput", "skill:test"]
    assert found["selection"] == (CHOSEN, USING.count(CHOSEN), "")
    assert found["additionalInput"][0] == "改短，去掉 ***REDACTED***"
    assert found["skill:test"][0] == (
        "润色《07》：{{text}}\n要求：{{instruction}}\n只写 （见前）。"
    )
    assert sum(tokens for _, tokens, _ in found.values()) == USING.count(found["skill:test"][2])
    assert assembly.user_content.text.count(CHOSEN) == 1
    assert assembly.tokens == USING.count(
        assembly.system_prompt.prompt.text + assembly.user_content.text
    )
    (redaction,) = assembly.layers[Layer.IMMEDIATE].redactions
    assert redaction.source_ref == "additionalInput"


def test_what_the_task_does_not_show_stands_by_itself() -> None:
    world = World(text=CHOSEN, selection=Span(0, 4), additional_input="改短。", task="润色。")

    found = immediate(assemble_world(world))

    assert found["selection"][2] == "### 选区\n苏晴没有\n"
    assert found["additionalInput"][2] == "### 用户指令\n改短。\n"


def story_units(lengths: list[int]) -> list[Unit]:
    """Return chapters as a source offers them for a long budget: a line each, and their texts."""
    starts = [sum(lengths[:n]) for n in range(len(lengths))]
    lines = "\n".join(f"- 第{n}章：出发。" for n in range(len(lengths)))
    far = synopsis_unit(lines, "synopsis", Place(FAR_CHAPTERS))
    whole = [
        synopsis_unit("雨" * length, f"第{n}章.md", Place(NEAR_CHAPTERS, "", start))
        for n, (length, start) in enumerate(zip(lengths, starts, strict=True))
    ]
    return [far, *whole]


def synopsis_unit(text: str, ref: str, place: Place) -> Unit:
    fragment = Fragment(
        layer=Layer.RETRIEVED,
        source="synopsis",
        source_ref=ref,
        text=text,
        kind=FragmentKind.SYNOPSIS,
        place=place,
    )
    return unit_of(fragment, USING)


def rendered_story(lengths: list[int], room: int) -> str:
    decisions = trim_chapters(story_units(lengths), room, max(1, room // 4), USING)
    return "".join(decision.rendered for decision in decisions)


@given(
    lengths=st.lists(st.integers(1, 900), min_size=1, max_size=12),
    room=st.integers(-5, 4000),
)
def test_each_chapter_of_a_long_story_is_kept_once_and_within_its_room(
    lengths: list[int], room: int
) -> None:
    """By its text, or by its line; only lines may be missing, the earliest first."""
    decisions = trim_chapters(story_units(lengths), room, max(1, room // 4), USING)

    kept = [decision for decision in decisions if decision.is_kept]
    assert sum(decision.tokens for decision in kept) <= max(0, room)
    whole = [d.evidence.source_ref for d in kept if d.evidence.source_ref != "synopsis"]
    assert whole == [f"第{n}章.md" for n in range(len(lengths) - len(whole), len(lengths))]
    lines = [d.text.split("\n") for d in kept if d.evidence.source_ref == "synopsis"]
    last = len(lengths) - len(whole)
    assert all(each == [f"- 第{n}章：出发。" for n in range(last)][-len(each) :] for each in lines)
    refs = [decision.evidence.source_ref for decision in decisions]
    assert len(refs) == len(set(refs))
    assert set(refs) >= {f"第{n}章.md" for n in range(len(lengths))}


@given(lengths=st.lists(st.integers(100, 500), min_size=2, max_size=30))
def test_a_chapter_more_rarely_moves_the_beginning_of_a_long_story(lengths: list[int]) -> None:
    """It is appended, or the beginning jumps by about a quarter of the room at once."""
    room = 3000
    stories = [rendered_story(lengths[:n], room) for n in range(1, len(lengths) + 1)]

    moved = sum(not later.startswith(one) for one, later in pairwise(stories))

    assert moved <= sum(lengths) / (room / 4) + 1


@pytest.mark.parametrize(
    ("lengths", "first"), [([400, 340, 2850], 2), ([400, 340, 2500, 300], 2), ([400, 2900, 90], 2)]
)
def test_short_chapters_never_keep_a_near_one_out(lengths: list[int], first: int) -> None:
    decisions = trim_chapters(story_units(lengths), 3000, 750, USING)

    whole = [d.evidence.source_ref for d in decisions if d.is_kept][1:]
    assert whole == [f"第{n}章.md" for n in range(first, len(lengths))]


def test_what_a_whole_chapter_shows_is_not_shown_again_as_a_passage() -> None:
    units = story_units([300, 300])
    inside = chunk("第1章.md", 0.9)
    other = chunk("旧作.md", 0.8)
    world = World(
        text="林远推开门。" * 20,
        cursor=60,
        surrounding=200,
        retrieved=(*(unit.fragment for unit in units), inside.fragment, other.fragment),
        profile=usual_profile(BudgetKind.LONG),
    )

    assembly = assemble_world(world, USING)

    rules = {d.evidence.source_ref: d.evidence.rule for d in _passages(assembly)}
    assert rules == {"第1章.md": Rule.DUPLICATE, "旧作.md": Rule.SCORE}
    assert [place.after for place in assembly.break_points].count("story") == 2
    assert assembly.break_points[-1].tokens <= assembly.tokens


def _passages(assembly: Assembly) -> list[Decision]:
    decisions = assembly.layers[Layer.RETRIEVED].decisions
    return [one for one in decisions if one.kind is not FragmentKind.SYNOPSIS]
