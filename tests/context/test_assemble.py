"""One assembly: the order of the layers, empty ones, and the fallback of a failing tokenizer."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import anyio
import pytest
from msgspec import structs

from creonowd.context.assemble import assemble, compose
from creonowd.context.fragment import (
    Action,
    Caution,
    FragmentKind,
    Layer,
    Omission,
    Place,
    Reason,
    show,
)
from creonowd.context.result import AssembleResult, ModelTarget, answer
from creonowd.context.source import SourceResult
from creonowd.context.stable_prefix import PrefixComparison
from creonowd.context.text_tools import Memory, TextTools
from creonowd.errors import DaemonError, ErrorCode, WarningCode, same_wording
from creonowd.redaction import Redacted, Redactor
from testing.sources import InMemorySource, piece
from tests.context.worlds import (
    REDACTOR,
    SECRET,
    SENTENCE,
    CountingTokenizer,
    World,
    assemble_world,
    profile_of,
    text_tools,
)
from tests.tokens.vocabulary import tokenizer

RULES = (
    piece(Layer.RULES, ".creonow/rules/style.md", "短句为主。", place=Place(0)),
    piece(
        Layer.RULES,
        ".creonow/rules/constraints.json#1",
        "严格第一人称叙述",
        kind=FragmentKind.CONSTRAINT,
        place=Place(2),
    ),
    piece(
        Layer.RULES,
        ".creonow/rules/constraints.json#2",
        "本世界没有魔法",
        kind=FragmentKind.CONSTRAINT,
        place=Place(2, "", 1),
    ),
    piece(
        Layer.RULES,
        ".creonow/characters/林远.md",
        "林远：冷静。",
        kind=FragmentKind.ENTITY,
        names=("林远",),
        place=Place(3),
    ),
)
FULL = World(
    rules=RULES,
    settings=(piece(Layer.SETTINGS, ".creonow/settings/世界观.md", "近未来的海港。"),),
    retrieved=tuple(
        piece(Layer.RETRIEVED, ref, text, score=0.9, place=Place(0, ref))
        for ref, text in (
            ("chapters/01.md#L3-L9", "前文。"),
            ("chapters/02.md#L1-L2", "风停了。"),
            ("chapters/03.md#L5-L8", "灯亮了。"),
            ("chapters/04.md#L2-L4", "门开了。"),
        )
    ),
    text="第十章。\n雨停了。",
    cursor=5,
    additional_input="写得紧张些。",
    task="请续写。",
)


def result_of(world: World) -> AssembleResult:
    return answer(assemble_world(world), PrefixComparison(), ModelTarget())


@pytest.mark.requirement("CE-006", "CN-001", "CN-029", "CN-031", "SK-036")
def test_the_layers_stand_in_their_order() -> None:
    result = result_of(FULL)

    marks = [
        "## Rules",
        "短句为主。",
        "[创作约束",
        "林远：冷静。",
        "## Settings",
        "近未来的海港。",
        "# 以上为固定上下文",
    ]
    assert [result.system_prompt.index(mark) for mark in marks] == sorted(
        map(result.system_prompt.index, marks)
    )
    marks = [
        "## Retrieved",
        "前文。",
        "## Immediate",
        "第十章。",
        "雨停了。",
        "写得紧张些。",
        "## Task\n请续写。\n",
    ]
    assert [result.user_content.index(mark) for mark in marks] == sorted(
        map(result.user_content.index, marks)
    )
    assert result.assembly_order == ["rules", "settings", "retrieved", "immediate"]


@pytest.mark.requirement("CE-044")
def test_constraints_have_their_heading_and_numbers() -> None:
    block = "[创作约束 - 不可违反]\n1. 严格第一人称叙述\n2. 本世界没有魔法\n"

    assert block in result_of(FULL).system_prompt


@pytest.mark.requirement("CN-030")
def test_an_empty_layer_says_so() -> None:
    result = result_of(World())

    for layer in ("Rules", "Settings", "Retrieved", "Immediate"):
        assert f"## {layer}\n(none)\n" in result.prompt
    assert result.token_count == result.fixed_tokens


@pytest.mark.requirement("CN-035", "CN-036", "CN-039", "CE-031")
def test_hashes_are_sha256_of_the_bytes() -> None:
    result = result_of(FULL)

    assert result.stable_prefix_hash == hashlib.sha256(result.system_prompt.encode()).hexdigest()
    assert result.prompt_hash == hashlib.sha256(result.prompt.encode()).hexdigest()


@pytest.mark.requirement("CE-060", "CN-041", "CN-042")
def test_the_layers_are_summed_up() -> None:
    result = result_of(FULL)

    rules = result.layers.rules
    assert rules.tokens == rules.token_count > 0
    assert rules.chunks == 4
    assert rules.source == [
        ".creonow/rules/style.md",
        ".creonow/rules/constraints.json",
        ".creonow/characters/林远.md",
    ]
    estimate = result.budget.estimate
    assert estimate.rules_tokens == rules.tokens
    assert estimate.total_tokens + result.fixed_tokens == result.token_count
    assert result.budget.max_input_tokens == 6000


def test_skills_that_ask_for_the_same_share_their_prefix() -> None:
    other = replace(FULL, task="请润色：{{text}}", additional_input="")

    assert result_of(FULL).system_prompt == result_of(other).system_prompt


def test_break_points_show_whether_they_are_long_enough() -> None:
    short, whole, *_ = result_of(FULL).cache_break_points
    result = result_of(FULL)

    assert whole.hash == result.stable_prefix_hash
    assert (short.after, whole.after) == ("rules", "systemPrompt")
    assert not whole.reaches_minimum
    text = result.system_prompt[: result.system_prompt.index("## Settings")]
    assert short.hash == hashlib.sha256(text.encode()).hexdigest()
    assert short.tokens == tokenizer("o200k_base").count(text)


@pytest.mark.requirement("CN-043")
def test_what_could_not_be_read_is_accounted_for() -> None:
    left = tuple(
        Omission(layer=Layer.SETTINGS, source="settings", source_ref=f"{reason}.md", reason=reason)
        for reason in (Reason.INVALID_FORMAT, Reason.READ_ERROR)
    )
    huge = piece(Layer.SETTINGS, "大.md", "很长的设定，一段又一段。\n" * 2000)
    gathered = replace(FULL, settings=(huge,)).gathered()
    assembly = compose(FULL.plan(), structs.replace(gathered, left_out=left), text_tools())

    found = {
        decision.evidence.source_ref: decision.evidence
        for decision in assembly.system_prompt.settings.decisions
    }
    assert found["invalid_format.md"].reason is Reason.INVALID_FORMAT
    assert found["read_error.md"].reason is Reason.READ_ERROR
    assert found["大.md"].before_chars == 26_000
    assert {found["大.md"].reason, found["大.md"].action} == {Reason.OVER_BUDGET, Action.TRIMMED}


@pytest.mark.requirement("CN-043")
def test_a_fragment_over_the_size_limit_is_cut_at_a_paragraph() -> None:
    text = "很长的设定，一段又一段。\n" * 2000
    world = World(settings=(piece(Layer.SETTINGS, "大.md", text),), profile=profile_of(60_000))

    (decision,) = assemble_world(world).system_prompt.settings.decisions

    assert decision.evidence.reason is Reason.TOO_LARGE
    assert decision.evidence.action is Action.TRIMMED
    assert 19_000 < decision.evidence.after_chars <= 20_000
    assert decision.text.endswith("\n")
    assert decision.evidence.before_tokens > decision.evidence.after_tokens


@pytest.mark.requirement("CN-043")
def test_json_over_the_size_limit_is_left_out_whole() -> None:
    text = '{"a":"' + "很长" * 15_000 + '"}'
    world = World(
        settings=(piece(Layer.SETTINGS, "大.json", text, whole=True),), profile=profile_of(60_000)
    )

    (decision,) = assemble_world(world).system_prompt.settings.decisions

    assert decision.evidence.action is Action.DROPPED
    assert decision.evidence.reason is Reason.TOO_LARGE


class FailingTokenizer(CountingTokenizer):
    """Fails as real ones do."""

    def __init__(self, fault: Exception | int) -> None:
        super().__init__(tokenizer("o200k_base"))
        self._fault = fault

    def count(self, text: str) -> int:
        if isinstance(self._fault, int):
            return self._fault
        raise self._fault


@pytest.mark.requirement("CE-068")
@pytest.mark.parametrize("fault", [ValueError("bad rank"), RuntimeError("poisoned"), -5])
def test_a_tokenizer_that_fails_falls_back_to_bytes_and_the_default_budget(
    fault: Exception | int,
) -> None:
    using = TextTools(FailingTokenizer(fault), REDACTOR, Memory())

    result = answer(
        assemble_world(replace(FULL, profile=profile_of(64_000)), using),
        PrefixComparison(),
        ModelTarget(),
    )

    assert "CONTEXT_BUDGET_FALLBACK" in result.warnings
    assert result.budget.max_input_tokens == 6000
    assert result.token_count == len(result.prompt.encode())
    assert not result.tokenizer_exact


async def test_sources_are_gathered_and_composed() -> None:
    sources = [
        InMemorySource(Layer.RULES, "rules", RULES),
        InMemorySource(Layer.SETTINGS, "settings", FULL.settings),
        InMemorySource(Layer.RETRIEVED, "rag", FULL.retrieved),
    ]
    said = same_wording(SECRET)
    warning = Caution(code=WarningCode.SOURCE_WARNING, wording=said, source_ref=SECRET)
    sources[2].answer = SourceResult(fragments=FULL.retrieved, warnings=(warning,))

    with anyio.fail_after(60):
        assembly = await assemble(FULL.plan(), sources, text_tools())

    assert assembly.system_prompt.prompt == assemble_world(FULL).system_prompt.prompt
    (shown,) = show(assembly.warnings).notices
    assert (shown.layer, shown.source_ref) == (Layer.RETRIEVED, "***REDACTED***")
    assert shown.message == "***REDACTED***"


@pytest.mark.parametrize("letter", ["a", "雨"])
async def test_what_is_far_too_long_is_refused_without_counting(letter: str) -> None:
    counter = CountingTokenizer(tokenizer("o200k_base"))
    world = replace(FULL, additional_input=letter * 48_001)

    with pytest.raises(DaemonError) as caught, anyio.fail_after(60):
        await assemble(world.plan(), [], text_tools(counter))

    assert caught.value.code is ErrorCode.CONTEXT_INPUT_TOO_LARGE
    assert counter.characters == 0


class CountingRedactor(Redactor):
    """A redactor that adds up the characters it has to redact."""

    characters = 0

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        self.characters += len(text)
        return super().redact(text, source_ref)

    def are_clean(self, texts: Sequence[str]) -> list[bool]:
        self.characters += sum(map(len, texts))
        return super().are_clean(texts)


@pytest.mark.requirement("CE-101")
def test_only_what_has_changed_is_counted_and_redacted_again() -> None:
    """Typing a sentence costs a sentence, not the project."""
    settings = [
        piece(Layer.SETTINGS, f"{n}.md", f"设定{n}。\n{SENTENCE * 20}", place=Place(0, f"{n:02}"))
        for n in range(40)
    ]
    chunks = [
        piece(Layer.RETRIEVED, f"{n}", f"前文{n}。\n{SENTENCE * 20}", score=0.5) for n in range(40)
    ]
    text = "".join(f"第{n}段。{SENTENCE}\n" for n in range(200))
    world = replace(
        FULL,
        settings=tuple(settings),
        retrieved=tuple(chunks),
        text=text,
        cursor=len(text),
        profile=profile_of(60_000),
    )
    typed = replace(world, text=f"{text}她终于开口。", cursor=len(text) + 6)
    counter, redactor = CountingTokenizer(tokenizer("o200k_base")), CountingRedactor()
    using = TextTools(counter, redactor, Memory())
    first = assemble_world(world, using)
    cold = counter.characters, redactor.characters

    assert assemble_world(world, using).prompt_hash == first.prompt_hash
    again = counter.characters - cold[0], redactor.characters - cold[1]
    assert assemble_world(typed, using).prompt_hash != first.prompt_hash
    after = counter.characters - cold[0], redactor.characters - cold[1]

    assert again == (0, 0)
    assert 0 < after[0] < cold[0] / 10
    assert 0 < after[1] < cold[1] / 10


@pytest.mark.requirement("CE-034", "CN-030")
def test_other_processes_with_other_hash_seeds_make_the_same_prompt() -> None:
    script = "from tests.context.test_assemble import FULL, result_of\nprint(result_of(FULL).prompt_hash)\n"
    seen = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            check=True,
            encoding="utf-8",
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert seen == {result_of(FULL).prompt_hash}


def test_a_reference_with_a_secret_or_a_line_break_is_harmless() -> None:
    world = World(settings=(piece(Layer.SETTINGS, f"a\n# {SECRET}.md", "x"),))

    result = result_of(world)

    assert SECRET not in result.prompt
    assert "### ref:a # ***REDACTED***" in result.prompt


@pytest.mark.parametrize(
    "ref", ["rag:password:#Tr0ub4dor&3xyz", "password=#con_tr0ub4dorabcdefghi"]
)
def test_a_secret_on_both_sides_of_the_sign_in_a_reference_is_harmless(ref: str) -> None:
    chunk = piece(Layer.RETRIEVED, ref, "前文。", score=1.0)

    result = result_of(World(retrieved=(chunk,)))

    assert "ub4dor" not in result.prompt + repr(result.trim_evidence)


def test_a_reference_keeps_its_lines_when_its_file_is_hidden() -> None:
    chunk = piece(Layer.RETRIEVED, "/home/bob/notes.md#L3-L9", "前文。", score=1.0)

    result = result_of(World(retrieved=(chunk,)))

    assert "### ref:***REDACTED***#L3-L9\n" in result.prompt


def test_a_secret_in_a_text_without_line_ends_is_reported_once() -> None:
    prose = "风雪里他走了很久没有停下也没有回头" * 600
    world = World(text=f"{prose} {SECRET} {prose}", cursor=2 * len(prose))

    result = result_of(replace(world, profile=profile_of(total=30_000)))

    assert result.prompt.count("***REDACTED***") == 1
    assert [found.match_count for found in result.redaction_evidence] == [1]
