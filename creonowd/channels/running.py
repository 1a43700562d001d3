"""One run for a client: its look-ups, its events and its record. What a run does is elsewhere."""

from functools import partial
from typing import Annotated, Literal, NamedTuple

import structlog
from msgspec import UNSET, Meta
from msgspec.structs import replace

from creonowd.channels.assembly import (
    AssembleContext,
    Name,
    PositionInText,
    Selection,
    make,
    remember,
)
from creonowd.channels.document import DocumentId
from creonowd.channels.run_result import (
    SkillRun,
    StreamEvent,
    diagnostics,
    earlier,
    refs_in,
    run_usage,
)
from creonowd.channels.session import Session
from creonowd.context.result import answer
from creonowd.errors import DaemonError, ErrorCode, WarningCode, warning_text
from creonowd.judge.judge import judge
from creonowd.judge.verdict import Verdict, constraints_in, placed, terms_of, unjudged, with_rest
from creonowd.model import Params
from creonowd.providers.provider import Provider
from creonowd.skills.running import Assembled, Attempt, Errand, Hands, Hear, Policy, carry_out
from creonowd.skills.summary import summarise
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import RunRecord

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
        attempts, failed = await carry_out(_errand(order), _hands(order, stream.hear))
        return await _recorded(order, attempts, _of_failure(failed))
    finally:
        stream.end()


def _errand(order: _Order) -> Errand:
    return Errand(
        whose=order.project.project_id,
        instruction=order.params.input or "",
        policy=order.params.on_violation,
    )


def _hands(order: _Order, hear: Hear) -> Hands:
    return Hands(
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
    made = await make(order.session, request)
    result = answer(made.assembly, remember(order.session, made), made.target)
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
