"""All sources at once: one that fails costs its own text and a warning, nothing else."""

import math
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from creonowd.context.budget import BudgetProfile, allowances_of
from creonowd.context.fragment import Layer, caution
from creonowd.context.plan import ContextRules, Need, Plan, SkillNeeds, place
from creonowd.context.source import (
    GatheredFragments,
    PendingResult,
    ResultCache,
    SourceQuery,
    SourceResult,
    gather,
    wanted_sources,
)
from creonowd.errors import DaemonError, ErrorCode, WarningCode
from testing.sources import InMemorySource, piece
from tests.context.worlds import profile_of

KG = caution(WarningCode.KG_UNAVAILABLE)


def plan(rules: ContextRules | None = None, profile: BudgetProfile | None = None) -> Plan:
    return Plan(
        project_id="prj_a",
        document_id="ch.md",
        skill=SkillNeeds(skill_id="s", rules=rules),
        allowances=allowances_of(profile or BudgetProfile()),
        document=place("ch.md", "第一段。\n" * 1000, 4321).document,
    )


def good() -> InMemorySource:
    return InMemorySource(Layer.RULES, "rules", [piece(Layer.RULES, "style.md", "短句。")])


def graph(**changes: Any) -> InMemorySource:
    source = InMemorySource(
        Layer.RULES, "kg", [piece(Layer.RULES, "林远", "冷静", **changes)], unavailable=KG
    )
    source.timeout_ms = 50
    return source


async def test_what_sources_give_stands_in_their_order() -> None:
    gathered = await gather(plan(), [good(), graph()])

    assert [f.source_ref for f in gathered.fragments[Layer.RULES]] == ["style.md", "林远"]
    assert not gathered.warnings


async def test_no_source_runs_out_of_time_while_its_turn_is_awaited() -> None:
    reading = anyio.CapacityLimiter(1)
    host, ours = graph(), good()
    impatient = replace(plan(), source_timeout_ms=1)
    results: list[GatheredFragments] = []
    early: list[SourceQuery] = []
    begun = anyio.current_time()

    async def run() -> None:
        results.append(await gather(impatient, [ours, host], reading))

    async with anyio.create_task_group() as tasks, reading:
        tasks.start_soon(run)
        with anyio.fail_after(60):
            while not host.queries or anyio.current_time() < begun + 0.01:
                await anyio.lowlevel.checkpoint()
        early.extend(ours.queries)

    assert not early
    assert len(results[0].fragments[Layer.RULES]) == 2
    assert not results[0].warnings


async def test_each_source_fails_in_its_own_way_and_costs_the_others_nothing() -> None:
    broken, mad, lost = (InMemorySource(Layer.RULES, name) for name in ("broken", "mad", "lost"))
    broken.failure, mad.answer, lost.hangs = OSError(5, "disk"), "nonsense", True
    impatient = replace(plan(), source_timeout_ms=20)

    with anyio.fail_after(60):
        gathered = await gather(impatient, [broken, mad, lost, good()])

    assert [f.source_ref for f in gathered.fragments[Layer.RULES]] == ["style.md"]
    assert {f.source: f.kind for f in gathered.failures} == {
        "broken": "OSError",
        "mad": "malformed",
        "lost": "timeout",
    }


async def test_warnings_of_answers_stand_before_those_of_failures() -> None:
    bad, warns = graph(), good()
    bad.failure = OSError(5, "disk")
    warns.answer = SourceResult(warnings=(caution(WarningCode.RULES_UNAVAILABLE),))

    gathered = await gather(plan(), [bad, warns])

    assert [w.code for w in gathered.warnings] == ["RULES_UNAVAILABLE", "KG_UNAVAILABLE"]


@pytest.mark.requirement("CE-061", "CE-071")
@pytest.mark.parametrize(
    "failure",
    [RuntimeError("x"), OSError(5, "disk"), KeyError("k"), DaemonError(ErrorCode.DISCONNECTED)],
)
async def test_a_source_that_fails_costs_its_part_and_a_warning(failure: Exception) -> None:
    bad = graph()
    bad.failure = failure

    gathered = await gather(plan(), [bad, good()])

    assert [f.source_ref for f in gathered.fragments[Layer.RULES]] == ["style.md"]
    assert gathered.warnings == (replace(KG, layer=Layer.RULES),)
    assert gathered.failures[0].source == "kg"


async def test_a_source_that_hangs_is_given_up_at_its_deadline() -> None:
    bad = graph()
    bad.hangs = True

    with anyio.fail_after(60):
        gathered = await gather(plan(), [good(), bad])

    assert gathered.failures[0].kind == "timeout"
    assert gathered.warnings == (replace(KG, layer=Layer.RULES),)
    assert len(gathered.fragments[Layer.RULES]) == 1


@pytest.mark.requirement("CE-071")
@pytest.mark.parametrize(
    "answer",
    [
        None,
        "nonsense",
        SourceResult(fragments=("text",)),  # pyright: ignore[reportArgumentType]
        SourceResult(fragments=(piece(Layer.SETTINGS, "x", "other layer"),)),
        SourceResult(fragments=(piece(Layer.RULES, "x", 7),)),  # pyright: ignore[reportArgumentType]
        SourceResult(fragments=(piece(Layer.RULES, "x", "t", score=1.5),)),
        SourceResult(fragments=(piece(Layer.RULES, "x", "t", score=math.nan),)),
        SourceResult(fragments=(piece(Layer.RULES, "x", "t", confidence=-0.1),)),
        SourceResult(fragments=(piece(Layer.RULES, "x", "t", token_count=-1),)),
        SourceResult(fragments=(piece(Layer.RULES, "x", "t", token_count=10**12),)),
    ],
)
async def test_a_source_that_talks_nonsense_is_left_out(answer: Any) -> None:
    bad = graph()
    bad.answer = answer

    gathered = await gather(plan(), [bad, good()])

    assert [f.source_ref for f in gathered.fragments[Layer.RULES]] == ["style.md"]
    assert gathered.failures[0].kind in {"malformed", "TypeError"}


@pytest.mark.requirement("CE-093")
async def test_text_of_another_project_ends_the_request() -> None:
    foreign = graph(project_id="prj_b")

    with pytest.raises(DaemonError) as caught:
        await gather(plan(), [good(), foreign])

    assert caught.value.code is ErrorCode.CONTEXT_SCOPE_VIOLATION
    assert caught.value.details["source"] == "kg"
    assert "prj_b" not in caught.value.message


async def test_a_source_that_finds_text_of_another_project_ends_the_request_too() -> None:
    strict = graph()
    strict.failure = DaemonError(ErrorCode.CONTEXT_SCOPE_VIOLATION)

    with pytest.raises(DaemonError) as caught:
        await gather(plan(), [good(), strict])

    assert caught.value is strict.failure


async def test_text_that_names_this_project_is_fine() -> None:
    gathered = await gather(plan(), [graph(project_id="prj_a")])

    assert len(gathered.fragments[Layer.RULES]) == 1


async def test_sources_of_the_stable_layers_learn_nothing_dynamic() -> None:
    static = [InMemorySource(Layer.RULES), InMemorySource(Layer.SETTINGS)]
    dynamic = [InMemorySource(Layer.RETRIEVED), InMemorySource(Layer.IMMEDIATE)]

    await gather(plan(), [*static, *dynamic])

    for source in static:
        (ask,) = source.queries
        assert (ask.document_id, ask.document, ask.query) == (None, None, "")
    for source in dynamic:
        (ask,) = source.queries
        assert ask.document_id == "ch.md"
        assert ask.query


def test_only_what_the_skill_asks_for_is_asked() -> None:
    sources = [InMemorySource(Layer.SETTINGS, need, need=need) for need in Need]

    chosen = wanted_sources(plan(ContextRules(characters=True, surrounding=100)), sources)

    assert [s.name for s in chosen] == ["always", "surrounding", "characters", "evidence"]
    assert wanted_sources(plan(None), sources) == sources


def test_a_layer_without_ratio_and_minimum_is_off() -> None:
    sources = [InMemorySource(layer) for layer in Layer]

    chosen = wanted_sources(plan(profile=profile_of(6000, ratios=(0.1, 0.0, 0.1, 0.1))), sources)

    assert [s.layer for s in chosen] == [Layer.RULES, Layer.RETRIEVED, Layer.IMMEDIATE]


class KeptSource(InMemorySource):
    """A source that has its answer in memory: the very same until it is given another."""

    def give(self, *texts: str) -> "KeptSource":
        """Answer with these texts from now on."""
        pieces = (piece(self.layer, f"{number}.md", text) for number, text in enumerate(texts))
        self.kept = SourceResult(fragments=tuple(pieces))
        return self

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return what is kept."""
        del ask
        return self.kept


async def test_a_source_whose_turn_never_comes_is_never_begun() -> None:
    source = InMemorySource(Layer.RULES, "rules", [])
    full = anyio.CapacityLimiter(1)
    full.acquire_on_behalf_of_nowait(source)

    with anyio.move_on_after(0.05) as scope:
        await gather(plan(), [source], reading=full)

    assert scope.cancelled_caught
    assert source.queries == []


async def test_answers_that_come_again_are_put_together_once() -> None:
    known = ResultCache()
    rules = KeptSource(Layer.RULES, "rules", []).give("短句。")
    found = KeptSource(Layer.RETRIEVED, "rag", []).give("雨。")

    first = await gather(plan(), [rules, found], cache=known)
    again = await gather(plan(), [rules, found], cache=known)
    found.give("雪。")
    other = await gather(plan(), [rules, found], cache=known)

    assert first.computed is not None
    assert again is first
    assert [one.text for one in other.fragments[Layer.RETRIEVED]] == ["雪。"]
    assert other.fragments[Layer.RULES] == first.fragments[Layer.RULES]


async def test_what_was_put_together_for_one_project_is_not_given_to_another() -> None:
    known = ResultCache()
    source = KeptSource(Layer.RULES, "kg", [])
    source.kept = SourceResult(fragments=(piece(Layer.RULES, "a", "b", project_id="prj_a"),))
    await gather(plan(), [source], cache=known)

    with pytest.raises(DaemonError) as caught:
        await gather(replace(plan(), project_id="prj_b"), [source], cache=known)

    assert caught.value.code is ErrorCode.CONTEXT_SCOPE_VIOLATION
