"""One run for a client: its look-ups, its events and its record. What a run does is elsewhere."""

import re
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial
from typing import Annotated, Literal, NamedTuple

import structlog
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from creonowd.context.result import AssembleResult, LayerSummaries, Provenance, answer
from creonowd.engine.assembly import (
    AssembleContext,
    Name,
    PositionInText,
    Selection,
    assemble_for_client,
    remember_prefix,
)
from creonowd.engine.services import Session
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.judge.judge import judge, named
from creonowd.judge.verdict import (
    PromptConstraints,
    Status,
    Verdict,
    constraints_in,
    placed,
    terms_of,
    unjudged,
    with_rest,
)
from creonowd.model import Model, Params, Result
from creonowd.providers.configured import SentPrefixes
from creonowd.providers.provider import Answer, Call, Provider, Stop, Usage
from creonowd.tokens.boundaries import grapheme_ceiling, grapheme_floor, sentences
from creonowd.workspace.documents import DocumentId
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import RunRecord

Hear = Callable[[int, str], None]


class Policy(StrEnum):
    """What follows a broken constraint: tell where, or write once more with it named."""

    ANNOTATE = "annotate"
    REGENERATE = "regenerate"


class RunRequest(Model):
    """What a run is to do; `whose` tells apart whose prefixes are worth caching."""

    whose: str
    instruction: str = ""
    policy: Policy = Policy.ANNOTATE


class Assembled(Model):
    """A prompt, whom it is for, and what its output will be judged by."""

    result: AssembleResult
    model: str
    max_output_tokens: int
    skill_name: str
    constraints: PromptConstraints = PromptConstraints()


class RunDependencies(NamedTuple):
    """What a run works with."""

    assemble: Callable[[str], Awaitable[Assembled]]
    provider: Provider
    judge: Callable[[Assembled, str], Awaitable[Verdict]]
    reuse: SentPrefixes
    hear: Hear


class Attempt(Model):
    """What was sent, what came back and what the judge says."""

    assembled: Assembled
    answer: Answer
    verdict: Verdict
    prefix_marked: bool


class Outcome(NamedTuple):
    """The attempts that came to an end, and what the second failed with if it did not."""

    attempts: tuple[Attempt, ...]
    failed: ErrorCode | None = None


async def run_skill(errand: RunRequest, hands: RunDependencies) -> Outcome:
    """Make one attempt, or two; the last one counts. What is written is not lost to the second."""
    first = await _attempt(1, errand.instruction, errand, hands)
    if errand.policy is Policy.ANNOTATE or first.verdict.status is not Status.VIOLATED:
        return Outcome((first,))
    told = "\n\n".join(part for part in (errand.instruction, named(first.verdict)) if part)
    try:
        return Outcome((first, await _attempt(2, told, errand, hands)))
    except DaemonError as error:
        return Outcome((first,), error.code)


async def _attempt(
    number: int, instruction: str, errand: RunRequest, hands: RunDependencies
) -> Attempt:
    assembled = await hands.assemble(instruction)
    call = _call(assembled, errand, hands)
    answer = await hands.provider.answer(call, lambda text: hands.hear(number, text))
    verdict = await hands.judge(assembled, answer.text)
    return Attempt(
        assembled=assembled, answer=answer, verdict=verdict, prefix_marked=call.mark_prefix
    )


def _call(assembled: Assembled, errand: RunRequest, hands: RunDependencies) -> Call:
    """Send the very bytes that were hashed; ask to cache the prefix where that can pay."""
    result = assembled.result
    prefix = result.stable_prefix_hash
    long_enough = any(
        point.hash == prefix and point.reaches_minimum for point in result.cache_break_points
    )
    likely = result.stable_prefix_unchanged or hands.reuse.is_likely(errand.whose, prefix)
    hands.reuse.note(errand.whose, prefix)
    return Call(
        model=assembled.model,
        system=result.system_prompt,
        user=result.user_content,
        max_output_tokens=assembled.max_output_tokens,
        prefix_hash=prefix,
        mark_prefix=long_enough and likely,
    )


_REF = re.compile(r"\n### (?:以上摘自 )?(ref:[^\n]+)")
_AFTER = " 光标之后"


class StreamEvent(Model):
    """The next piece of a run's output; the pieces of one attempt join up to all of it.

    `attempt` is 2 once a run writes again because a constraint was broken: what was heard before
    is void then, unless the second attempt fails: the result's `attempts` says which one counts.
    `done` comes once, last, however the run ends.
    """

    run_id: str
    attempt: int
    delta: str
    done: bool = False


class RunUsage(Model):
    """Our exact count of what was sent beside what the provider counted, if it told.

    `difference` is the provider's count less ours.
    """

    estimated_input_tokens: int
    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET
    difference: int | UnsetType = UNSET


class Diagnostics(Provenance):
    """How the prompt of a run came about: all that `context:assemble` tells but the prompt.

    `prefixMarked` says whether the provider was asked to cache the stable prefix.
    """

    token_count: int
    fixed_tokens: int
    layers: LayerSummaries
    prefix_marked: bool


_SHARED = [n for n in Diagnostics.__struct_fields__ if n in AssembleResult.__struct_fields__]


class EarlierAttempt(Model):
    """What was written first, why it was written again, and what it cost."""

    output: str
    verdict: Verdict
    usage: RunUsage


class SkillRun(Result):
    """What a run came to.

    `refs` are the references of everything in the prompt, as they stand in it. `verdict` and
    `usage` are of `output`; `earlier` is there if a broken constraint made the run write again.
    """

    run_id: str
    skill_id: str
    provider: str
    model: str
    output: str
    stop_reason: Stop
    usage: RunUsage
    verdict: Verdict
    attempts: int
    refs: list[str]
    warnings: list[str]
    diagnostics: Diagnostics
    earlier: EarlierAttempt | UnsetType = UNSET


def diagnostics(assembled: AssembleResult, *, prefix_marked: bool) -> Diagnostics:
    """Take from an assembly all but its prompt."""
    fields = {name: getattr(assembled, name) for name in _SHARED}
    return Diagnostics(**fields, prefix_marked=prefix_marked)


def run_usage(estimated: int, told: Usage | None) -> RunUsage:
    """Set what the provider counted beside our own count."""
    if told is None:
        return RunUsage(estimated_input_tokens=estimated)
    return RunUsage(
        estimated_input_tokens=estimated,
        input_tokens=told.input_tokens,
        output_tokens=told.output_tokens,
        cache_read_tokens=told.cache_read_tokens,
        cache_write_tokens=told.cache_write_tokens,
        difference=told.input_tokens - estimated,
    )


def earlier(attempt: Attempt, *, utf16: bool) -> EarlierAttempt:
    """Tell what was written first."""
    output = attempt.answer.text
    return EarlierAttempt(
        output=output,
        verdict=placed(attempt.verdict, output, utf16=utf16),
        usage=run_usage(attempt.assembled.result.token_count, attempt.answer.usage),
    )


def refs_in(assembled: AssembleResult) -> list[str]:
    """List the references in a prompt, in their order, as they stand in it.

    Of a document that is shown in part, the reference that says which part.
    """
    layers = assembled.layers
    known = {*layers.rules.source, *layers.settings.source}
    known.update(layers.retrieved.source, layers.immediate.source)
    found = (ref.removesuffix(_AFTER) for ref in _REF.findall(assembled.prompt))
    refs = dict.fromkeys(ref for ref in found if ref[4:].partition("#")[0] in known)
    in_part = {ref.partition("#L")[0] for ref in refs if "#L" in ref}
    return [ref for ref in refs if ref not in in_part]


HEAD = 120
TAIL = 120
INSTRUCTION = 200
LOOK = 1000


def summarise(skill_name: str, instruction: str, output: str) -> str:
    """Tell which skill ran, what it was told, and how its output begins and ends."""
    lines = [f"技能：{_line(skill_name)}"]
    if asked := _line(instruction):
        lines.append(f"指令：{_head(asked, INSTRUCTION)}")
    written = _extract(output)
    lines.append(f"产出（{len(output)} 字）：{written}" if written else "产出：无")
    return "\n".join(lines)


def _line(text: str) -> str:
    return " ".join(text.split())


def _extract(text: str) -> str:
    """Keep beginning and end; of a long text nothing else is looked at."""
    if len(text) > 2 * LOOK:
        return f"{_head(_line(text[:LOOK]), HEAD)} …… {_tail(_line(text[-LOOK:]), TAIL)}"
    line = _line(text)
    return line if len(line) <= HEAD + TAIL else f"{_head(line, HEAD)} …… {_tail(line, TAIL)}"


def _head(text: str, limit: int) -> str:
    """Keep the beginning, up to a sentence if one ends in its second half."""
    if len(text) <= limit:
        return text
    ends = list(sentences(text, limit // 2, limit))
    return text[: ends[-1] if ends else grapheme_floor(text, limit)].rstrip()


def _tail(text: str, limit: int) -> str:
    """Keep the end, from a sentence if one begins in its first half."""
    start = max(0, len(text) - limit)
    begins = next(sentences(text, start, start + limit // 2), None)
    return text[grapheme_ceiling(text, start) if begins is None else begins :]


STREAM = "ai:skill:stream"

log = structlog.stdlib.get_logger(__name__)


class RunSkill(Params):
    """Which skill to run, where, and with what instruction.

    With `stream` the output is told as it is written, in `ai:skill:stream` events. A client that
    names the `runId` can cancel the run before it has heard of it. `onViolation` says what
    follows a broken constraint; `judge` overrules the setting for this run.
    """

    project_id: str
    skill_id: Name
    document_id: DocumentId
    cursor_position: PositionInText
    selection: Selection | None = None
    input: str | None = None
    stream: bool = False
    run_id: Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")] | None = None
    on_violation: Policy = Policy.ANNOTATE
    judge: Literal["off", "rules", "model"] | None = None


class _Order(NamedTuple):
    """A run with all that was looked up for it."""

    session: Session
    params: RunSkill
    run_id: str
    project: Project
    provider: Provider


class _Stream:
    """Tells a client what is being written, if it wants to know."""

    def __init__(self, session: Session, run_id: str, *, wanted: bool) -> None:
        self._peer = session.peer
        self._run_id = run_id
        self._wanted = wanted
        self._attempt = 1

    def hear(self, attempt: int, text: str) -> None:
        """Tell the next piece."""
        self._attempt = attempt
        self._tell(text)

    def end(self) -> None:
        """Tell that nothing more will come."""
        self._tell("", done=True)

    def _tell(self, text: str, *, done: bool = False) -> None:
        if self._wanted:
            event = StreamEvent(run_id=self._run_id, attempt=self._attempt, delta=text, done=done)
            self._peer.notify(STREAM, event, key=f"{self._run_id}:{self._attempt}", merge=_joined)


async def run(session: Session, params: RunSkill, run_id: str) -> SkillRun:
    """Carry out a run that has its id; however it ends, its listeners hear the end."""
    stream = _Stream(session, run_id, wanted=params.stream)
    try:
        project = await session.projects.find(params.project_id)
        provider = await session.ai.current()
        order = _Order(session, params, run_id, project, provider)
        attempts, failed = await run_skill(_errand(order), _hands(order, stream.hear))
        return await _recorded(order, attempts, _of_failure(failed))
    finally:
        stream.end()


def _errand(order: _Order) -> RunRequest:
    return RunRequest(
        whose=order.project.project_id,
        instruction=order.params.input or "",
        policy=order.params.on_violation,
    )


def _hands(order: _Order, hear: Hear) -> RunDependencies:
    return RunDependencies(
        assemble=partial(_assemble, order),
        provider=order.provider,
        judge=partial(_judge, order),
        reuse=order.session.prefix_reuse,
        hear=hear,
    )


async def _assemble(order: _Order, instruction: str) -> Assembled:
    """Assemble as `context:assemble` does, and become the previous call for the prefix."""
    params = order.params
    request = AssembleContext(
        project_id=params.project_id,
        document_id=params.document_id,
        cursor_position=params.cursor_position,
        skill_id=params.skill_id,
        additional_input=instruction or None,
        selection=params.selection,
        provider=order.provider.name,
        model=order.session.settings.ai_model or None,
    )
    made = await assemble_for_client(order.session, request)
    result = answer(made.assembly, remember_prefix(order.session, made), made.target)
    return Assembled(
        result=result,
        model=made.target.model,
        max_output_tokens=made.profile.output_reserve_tokens,
        skill_name=made.assembly.plan.skill.name or params.skill_id,
        constraints=constraints_in(made.assembly),
    )


async def _judge(order: _Order, assembled: Assembled, output: str) -> Verdict:
    mode = order.params.judge or order.session.settings.ai_judge
    told = assembled.constraints
    if mode == "off":
        return unjudged(told)
    terms = await terms_of(order.session.tree, order.project) if told.terms is None else told.terms
    provider = order.provider if mode == "model" else None
    clean = order.session.redactor.redact
    verdict = await judge(output, told.charges, terms or (), provider, assembled.model, clean=clean)
    return with_rest(verdict, told, terms)


async def _recorded(order: _Order, attempts: tuple[Attempt, ...], warnings: list[str]) -> SkillRun:
    """Keep what the run came to, then put it into words.

    One after the other: at once, the writing thread would wait for the interpreter at each step.
    """
    problems = await _record(order, attempts[-1])
    return _told(order, attempts, [*warnings, *problems])


async def _record(order: _Order, attempt: Attempt) -> list[str]:
    """Write the run down; an output is not lost because that fails."""
    told_to = order.params.input or ""
    summary = summarise(attempt.assembled.skill_name, told_to, attempt.answer.text)
    record = _as_record(order, attempt, order.session.redactor.redact(summary).text)
    try:
        await order.session.runs.record(order.project.project_id, order.params.document_id, record)
    except DaemonError as error:
        log.warning("ai_run_not_recorded", run_id=order.run_id, code=error.code)
        return [warning_text(WarningCode.RUNS_UNAVAILABLE)]
    return []


def _of_failure(failed: ErrorCode | None) -> list[str]:
    return [] if failed is None else [f"{WarningCode.AI_REWRITE_FAILED}: {failed}"]


def _as_record(order: _Order, attempt: Attempt, summary: str) -> RunRecord:
    usage, result = attempt.answer.usage, attempt.assembled.result
    return RunRecord(
        run_id=order.run_id,
        skill_id=order.params.skill_id,
        at_ms=order.session.clock.now_ms(),
        provider=order.provider.name,
        model=attempt.assembled.model,
        prompt_hash=result.prompt_hash,
        stable_prefix_hash=result.stable_prefix_hash,
        token_count=result.token_count,
        summary=summary,
        input_tokens=usage and usage.input_tokens,
        output_tokens=usage and usage.output_tokens,
        cache_read_tokens=usage and usage.cache_read_tokens,
        cache_write_tokens=usage and usage.cache_write_tokens,
        verdict=attempt.verdict.status,
    )


def _told(order: _Order, attempts: tuple[Attempt, ...], warnings: list[str]) -> SkillRun:
    last, utf16 = attempts[-1], order.session.peer.utf16
    result = last.assembled.result
    log.info("ai_run", run_id=order.run_id, prompt_hash=result.prompt_hash, attempts=len(attempts))
    return SkillRun(
        run_id=order.run_id,
        skill_id=order.params.skill_id,
        provider=order.provider.name,
        model=last.assembled.model,
        output=last.answer.text,
        stop_reason=last.answer.stop,
        usage=run_usage(result.token_count, last.answer.usage),
        verdict=placed(last.verdict, last.answer.text, utf16=utf16),
        attempts=len(attempts),
        refs=refs_in(result),
        warnings=[*result.warnings, *warnings],
        diagnostics=diagnostics(result, prefix_marked=last.prefix_marked),
        earlier=earlier(attempts[0], utf16=utf16) if len(attempts) > 1 else UNSET,
    )


def _joined(waiting: StreamEvent, fresh: StreamEvent) -> StreamEvent:
    return replace(waiting, delta=waiting.delta + fresh.delta, done=fresh.done)
