"""`ai:skill:run`: assemble a prompt, ask the model, judge its output, and record the run."""

import contextlib
import re
from collections.abc import Generator
from enum import StrEnum
from functools import partial
from typing import Annotated, Literal, NamedTuple

import anyio
import structlog
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from creonowd.context.fragment import Caution, Notice, caution, show
from creonowd.context.language import FRAMES, ManuscriptLanguage
from creonowd.context.result import AssembleResult, LayerSummaries, Provenance, answer
from creonowd.engine.assembly import (
    MOST_PINS,
    AssembleContext,
    OutputTokens,
    PositionInText,
    Selection,
    ShortText,
    assemble_for_client,
    choose_model,
    remember_prefix,
)
from creonowd.engine.services import MeteredProvider, Session
from creonowd.errors import (
    DaemonError,
    ErrorCode,
    Language,
    WarningCode,
    Wording,
    same_wording,
)
from creonowd.judge.judge import (
    Criteria,
    Status,
    UncheckedCode,
    Verdict,
    add_missing,
    criteria_of,
    in_client_units,
    judge,
    project_terms,
    rewrite_instruction,
    verdict_without_judge,
)
from creonowd.model import Model, Params, Result
from creonowd.providers.configured import Choice
from creonowd.providers.provider import (
    Answer,
    Block,
    Call,
    Effort,
    OnText,
    Provider,
    Sampling,
    Stop,
    cut_blocks,
)
from creonowd.rpc.connection import Peer
from creonowd.text import well_formed
from creonowd.tokens.boundaries import grapheme_ceiling, grapheme_floor, sentences
from creonowd.tokens.models import CountKind
from creonowd.workspace.documents import DocumentId
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import RunRecord, RunSummary

STREAM = "ai:skill:stream"
HEAD = 120
TAIL = 120
LONGEST_INSTRUCTION = 200
LONGEST_CHECKED = 200_000

RunId = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")]

# Beginning and end of an output are looked for in this many code points at either side.
_SIDE = 1000
_EXCERPTS = "|".join(re.escape(frame.excerpt) for frame in FRAMES.values())
_REF = re.compile(rf"\n### (?:{_EXCERPTS})?(ref:[^\n]+)")
_AFTER_CURSOR = re.compile(f"(?:{'|'.join(frame.after for frame in FRAMES.values())})$")

# The share of our count that a provider must at least report to have read all.
_LEAST_READ = {CountKind.EXACT: 0.9, CountKind.BOUND: 0.5, CountKind.APPROXIMATE: 0.6}
_WIRE_NAMES = {"top_p": "topP"}
_DROPPED = Wording(
    "{} is not known to {}, which answered without it.", "{1} 不认识 {0}，作答时未使用。"
)
_TRUNCATED = Wording(
    "the server read {} of {} tokens and dropped the rest, the rules at the beginning first. Give the"
    " model a larger window (Ollama: the provider ollama does; LM Studio: Context Length; llama.cpp:"
    " -c), or make contextWindowTokens of the budget smaller.",
    "服务器只读了 {1} 中的 {0} 个词元，其余被丢弃，开头的规则最先丢失。请调大模型的窗口（Ollama：使用"
    " ollama 后端；LM Studio：Context Length；llama.cpp：-c），或调小预算的 contextWindowTokens。",
)
_ALL_THOUGHT = Wording(
    "all {} tokens of the answer went into thinking. Raise maxOutputTokens or outputReserveTokens of"
    " the budget, or lower effort.",
    "回答的 {} 个词元全部用于思考。请调大 maxOutputTokens 或预算的 outputReserveTokens，或降低 effort。",
)

log = structlog.stdlib.get_logger(__name__)


class Policy(StrEnum):
    """What follows a broken constraint: report where, or write once more with it named."""

    ANNOTATE = "annotate"
    """Report where it is broken."""
    REGENERATE = "regenerate"
    """Write once more, with the broken constraints named."""


class RunSkill(Params):
    """Which skill to run, where, and with what instruction.

    Where the run leaves `model`, `temperature`, `topP`, `effort` or `maxOutputTokens` out, the
    skill decides, else the settings. What the back end does not know is dropped, with the warning
    AI_PARAMETER_DROPPED.
    """

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    skill_id: ShortText | None = None
    """The skill; without one all sources are read and `input` alone says what to write."""
    document_id: DocumentId
    """The document: its path below the project's folder with `/` between the names, such as
    `chapters/07.md`."""
    cursor_position: PositionInText
    """Where the cursor stands in the document, in the connection's position encoding."""
    selection: Selection | None = None
    """What is selected; some skills need it."""
    input: str | None = None
    """The author's instruction."""
    stream: bool = False
    """Whether to send the output as it is written, in `ai:skill:stream` events."""
    run_id: RunId | None = None
    """An id of the client's own for the run, so that it can be cancelled before it has its result;
    without it, the daemon makes one."""
    on_violation: Policy = Policy.ANNOTATE
    """What follows a broken constraint."""
    judge: Literal["off", "rules", "model"] | None = None
    """Who judges this run, instead of the setting."""
    backend: ShortText | None = None
    """The name of a back end of `ai:config:get`; without it, the one that answers now."""
    model: ShortText | None = None
    """The name of a model, or of a back end."""
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    """How freely it writes."""
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    """From which share of the likely words it chooses."""
    effort: Effort | None = None
    """How long the model may think before it writes."""
    max_output_tokens: OutputTokens | None = None
    """How long the answer may be, thinking included."""
    pinned: Annotated[tuple[ShortText, ...], Meta(max_length=MOST_PINS)] = ()
    """References of candidates that are kept before others, as for `context:assemble`."""


class StreamEvent(Model):
    """The next piece of a run's output; the pieces of one attempt join up to all of it."""

    run_id: str
    """The run."""
    attempt: int
    """1, or 2 once it writes again because a constraint was broken: the pieces of the first
    attempt are void then, unless the second fails; the result's `attempts` says which one
    counts."""
    delta: str
    """The piece."""
    done: bool = False
    """True once, in the last event, however the run ends."""


class RunUsage(Model):
    """Our count of what was sent beside the provider's own; what it does not report is absent."""

    estimated_input_tokens: int
    """Our count of the prompt."""
    input_tokens: int | UnsetType = UNSET
    """The provider's count of the prompt, what came from its cache included."""
    output_tokens: int | UnsetType = UNSET
    """The provider's count of the answer, thinking included."""
    cache_read_tokens: int | UnsetType = UNSET
    """How many tokens came from the provider's cache."""
    cache_write_tokens: int | UnsetType = UNSET
    """How many tokens it wrote to its cache."""
    difference: int | UnsetType = UNSET
    """The provider's count of the prompt less ours."""


class Diagnostics(Provenance):
    """How the prompt of a run came about: the result of `context:assemble` without the prompt."""

    token_count: int
    """How many tokens the prompt had."""
    fixed_tokens: int
    """How many of them are of the frame: titles, separators, the skill's own words."""
    layers: LayerSummaries
    """Each layer in brief."""
    prefix_marked: bool
    """Whether the provider was asked to cache the stable prefix."""


class EarlierAttempt(Model):
    """The first output, why it was written again, and what it cost."""

    output: str
    """What was written first."""
    verdict: Verdict
    """Which constraints it broke."""
    usage: RunUsage
    """What it cost."""


class SkillRun(Result):
    """The result of a run."""

    run_id: str
    """Its id, for `ai:run:accept` and `ai:run:discard`."""
    skill_id: str | None
    """The skill; null if there was none."""
    backend: str
    """The name of the back end that answered."""
    provider: str
    """The format that it speaks."""
    model: str
    """The model that answered."""
    output: str
    """The text."""
    stop_reason: Stop
    """Why it ended: complete, at its limit, or refused."""
    usage: RunUsage
    """What `output` used."""
    verdict: Verdict
    """Which constraints `output` keeps, breaks, or could not be checked for."""
    attempts: int
    """2 if it was written again because a constraint was broken, else 1."""
    refs: list[str]
    """The references of everything in the prompt, as they stand in it."""
    warnings: list[str]
    """What did not go as it should, each as `CODE` or `CODE: sentence`; `notices` has the same in
    parts."""
    notices: list[Notice]
    """The warnings in parts, in the same order: test `code`, show `message`."""
    diagnostics: Diagnostics
    """How the prompt came about."""
    earlier: EarlierAttempt | UnsetType = UNSET
    """The first attempt, if there were two."""


class Attempt(Model):
    """A prompt, the model's answer to it, and the verdict on that.

    `reserve` is the tokens that the answer could have.
    """

    prompt: AssembleResult
    reserve: int
    language: ManuscriptLanguage
    prefix_marked: bool
    skill_name: str
    model: str
    answer: Answer
    verdict: Verdict


async def run_skill(session: Session, params: RunSkill) -> SkillRun:
    """Run a skill: assemble the prompt, ask the model, judge its output and record the run.

    There is a second attempt if the first breaks a constraint and `onViolation` is `regenerate`.
    The last attempt counts; if the second one fails, the first counts, with a warning.
    """
    run_id = session.clock.new_id("run") if params.run_id is None else params.run_id
    if session.redactor.hide_secrets(run_id) != run_id:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT, "runId holds a secret; choose another.", field="runId"
        )
    with (
        session.in_flight.register(run_id, session.peer.id),
        contextlib.closing(_OutputStream(session.peer, run_id, enabled=params.stream)) as stream,
    ):
        project = await session.projects.find(params.project_id)
        choice = await _choose(session, params, project)
        async with session.ai.borrow(choice.backend) as provider:
            await _learn_window(session, project, choice)
            return await _run(
                session, params, project, _RunChoice(run_id, choice, provider), stream
            )


class _RunChoice(NamedTuple):
    """A run, and who answers it."""

    run_id: str
    choice: Choice
    provider: Provider


async def _choose(session: Session, params: RunSkill, project: Project) -> Choice:
    """Decide who answers."""
    entry = None
    if params.skill_id is not None:
        entry = await session.skills.find(params.skill_id, project)
    sampling = Sampling(temperature=params.temperature, top_p=params.top_p, effort=params.effort)
    skill = None if entry is None else entry.skill
    return choose_model(session, _request(params), skill, sampling=sampling)


async def _learn_window(session: Session, project: Project, choice: Choice) -> None:
    """Ask a local server for its window before the prompt is made."""
    if session.ai.is_local(choice.backend):
        profile = (await session.budgets.effective(project.project_id)).profile
        await session.ai.learn_window(choice.backend, choice.model or profile.model)


def _request(params: RunSkill, instruction: str = "") -> AssembleContext:
    return AssembleContext(
        project_id=params.project_id,
        document_id=params.document_id,
        cursor_position=params.cursor_position,
        skill_id=params.skill_id,
        additional_input=instruction or None,
        selection=params.selection,
        model=params.model,
        backend=params.backend,
        max_output_tokens=params.max_output_tokens,
        pinned=params.pinned,
    )


async def _run(
    session: Session, params: RunSkill, project: Project, asked: _RunChoice, stream: "_OutputStream"
) -> SkillRun:
    run_id, provider = asked.run_id, asked.provider
    attempt = partial(_attempt, session, params, project, asked)
    instruction = params.input or ""
    attempts = [await attempt(instruction=instruction, on_text=partial(stream.send, 1))]
    warnings: list[Caution] = []
    violated = attempts[0].verdict.status is Status.VIOLATED
    if violated and params.on_violation is Policy.REGENERATE:
        rewrite = rewrite_instruction(attempts[0].verdict, FRAMES[attempts[0].language])
        if instruction:
            rewrite = f"{instruction}\n\n{rewrite}"
        try:
            attempts.append(await attempt(instruction=rewrite, on_text=partial(stream.send, 2)))
        except DaemonError as error:
            warnings.append(_rewrite_failed(error))
    # Record first: while the result is built, the writing thread would wait for the interpreter lock.
    last = attempts[-1]
    warnings += _reading_cautions(session, asked.choice, last)
    if not await _record(session, params, run_id, provider.name, last):
        warnings.append(caution(WarningCode.RUNS_UNAVAILABLE))
    prompt_hash = last.prompt.prompt_hash
    log.info("ai_run", run_id=run_id, prompt_hash=prompt_hash, attempts=len(attempts))
    utf16 = session.peer.utf16
    shown = show(warnings, session.connection.language)
    return SkillRun(
        run_id=run_id,
        skill_id=params.skill_id and session.redactor.hide_secrets(params.skill_id),
        backend=asked.choice.backend,
        provider=provider.name,
        model=session.redactor.hide_secrets(last.model),
        output=last.answer.text,
        stop_reason=last.answer.stop,
        usage=_usage(last),
        verdict=in_client_units(last.verdict, last.answer.text, utf16=utf16),
        attempts=len(attempts),
        refs=_refs_in(last.prompt),
        warnings=[*last.prompt.warnings, *shown.warnings],
        notices=[*last.prompt.notices, *shown.notices],
        diagnostics=_diagnostics(last.prompt, prefix_marked=last.prefix_marked),
        earlier=_earlier(attempts[0], utf16=utf16) if len(attempts) > 1 else UNSET,
    )


def _rewrite_failed(error: DaemonError) -> Caution:
    return Caution(
        code=WarningCode.AI_REWRITE_FAILED,
        wording=same_wording(error.code),
        details=(("error", error.code),),
    )


class _OutputStream:
    """Sends a run's output to the client while it is written, if the client asked for that."""

    def __init__(self, peer: Peer, run_id: str, *, enabled: bool) -> None:
        self._peer = peer
        self._run_id = run_id
        self._enabled = enabled
        self._attempt = 1

    def send(self, attempt: int, text: str) -> None:
        """Send the next piece."""
        self._attempt = attempt
        self._notify(text)

    def close(self) -> None:
        """Send the last event."""
        self._notify("", done=True)

    def _notify(self, text: str, *, done: bool = False) -> None:
        if self._enabled:
            event = StreamEvent(run_id=self._run_id, attempt=self._attempt, delta=text, done=done)
            self._peer.notify(STREAM, event, key=f"{self._run_id}:{self._attempt}", merge=_merge)


def _merge(waiting: StreamEvent, fresh: StreamEvent) -> StreamEvent:
    return replace(waiting, delta=waiting.delta + fresh.delta, done=fresh.done)


async def _attempt(
    session: Session,
    params: RunSkill,
    project: Project,
    asked: _RunChoice,
    *,
    instruction: str,
    on_text: OnText,
) -> Attempt:
    """Assemble as `context:assemble` does, ask the model, and judge its answer."""
    choice, provider = asked.choice, asked.provider
    made = await assemble_for_client(
        session,
        _request(params, instruction),
        choice=choice,
    )
    prompt = answer(made.assembly, remember_prefix(session, made), made.target)
    system_blocks, user_blocks = _blocks(session, project, prompt)
    call = Call(
        model=made.target.model,
        system=prompt.system_prompt,
        user=prompt.user_content,
        max_output_tokens=made.profile.output_reserve_tokens,
        window=made.profile.context_window_tokens,
        sampling=choice.sampling,
        prefix_hash=prompt.stable_prefix_hash,
        mark_prefix=_is_worth_caching(session, project, prompt),
        system_blocks=system_blocks,
        user_blocks=user_blocks,
    )
    session.sent_prefixes.note(project.project_id, prompt.stable_prefix_hash)
    skill_id = session.redactor.hide_secrets(params.skill_id or "")
    provider = MeteredProvider(provider, session, project.project_id, skill_id, prompt)
    reply = await provider.answer(call, on_text)
    if reply.usage is not None and not reply.echo:
        counts = (prompt.token_count, reply.usage.input_tokens)
        if not is_truncated(*counts, prompt.count_kind):
            await session.corrections.learn(call.model, prompt.count_kind, *counts)
    mode = params.judge or session.settings.ai_judge
    criteria = criteria_of(made.assembly)
    chinese = session.connection.language is Language.CHINESE
    if mode == "off":
        verdict = verdict_without_judge(criteria, UncheckedCode.OFF, chinese=chinese)
    elif reply.echo:
        verdict = verdict_without_judge(criteria, UncheckedCode.ECHO, chinese=chinese)
    else:
        verdict = await _judge(
            session,
            project,
            reply.text,
            criteria,
            manuscript=made.assembly.plan.language,
            provider=provider if mode == "model" else None,
            model=call.model,
        )
    return Attempt(
        prompt=prompt,
        reserve=call.max_output_tokens,
        language=made.assembly.plan.language,
        prefix_marked=call.mark_prefix,
        skill_name=made.assembly.plan.skill.name or params.skill_id or "",
        model=call.model,
        answer=reply,
        verdict=verdict,
    )


def is_truncated(ours: int, theirs: int, kind: CountKind) -> bool:
    """Return whether a provider's count is so far below ours that it did not read all of it.

    A count that is no more than a bound, or of another model's table, may be far above the truth.
    """
    return theirs < _LEAST_READ[kind] * ours


def _reading_cautions(session: Session, choice: Choice, attempt: Attempt) -> list[Caution]:
    """Warn of a prompt that was not read, an answer that was not written, a parameter not used."""
    ours, reply = attempt.prompt.token_count, attempt.answer
    cautions = [
        Caution(
            code=WarningCode.AI_PARAMETER_DROPPED,
            wording=_DROPPED.format(_WIRE_NAMES.get(name, name), attempt.model),
            details=(("parameter", _WIRE_NAMES.get(name, name)), ("model", attempt.model)),
        )
        for name in sorted(reply.dropped)
    ]
    theirs = None if reply.usage is None else reply.usage.input_tokens
    if theirs is not None and is_truncated(ours, theirs, attempt.prompt.count_kind):
        session.ai.forget_window(choice.backend, attempt.model)
        cautions.append(
            Caution(
                code=WarningCode.PROMPT_TRUNCATED_BY_SERVER,
                wording=_TRUNCATED.format(theirs, ours),
                details=(("readTokens", theirs), ("sentTokens", ours)),
            )
        )
    if reply.stop is Stop.LENGTH and not reply.text.strip():
        cautions.append(
            Caution(
                code=WarningCode.OUTPUT_EMPTY_AFTER_THINKING,
                wording=_ALL_THOUGHT.format(attempt.reserve),
                details=(("maxOutputTokens", attempt.reserve),),
            )
        )
    return cautions


def _blocks(
    session: Session, project: Project, prompt: AssembleResult
) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Cut a prompt at its break points, for providers that cache up to marked places.

    The window is marked only if what stands before it was sent before. Where passages change with
    every call nothing of it would be read from the cache again, and writing it costs a quarter more.
    """
    points = prompt.cache_break_points
    if not any(point.marked for point in points):
        return (), ()
    before = [point for point in points if point.after != "window"][-1]
    holds = session.sent_prefixes.comes_again(project.project_id, before.hash)
    ends = [(p.bytes, p.marked and (holds or p.after != "window")) for p in points]
    size = len(prompt.system_prompt.encode())
    system = [(end, marked) for end, marked in ends if end <= size]
    user = [(end - size, marked) for end, marked in ends if end > size]
    return cut_blocks(prompt.system_prompt, system), cut_blocks(prompt.user_content, user)


def _is_worth_caching(session: Session, project: Project, prompt: AssembleResult) -> bool:
    """Return whether the stable prefix is long enough to be cached and likely to come again."""
    prefix = prompt.stable_prefix_hash
    long_enough = any(
        point.hash == prefix and point.reaches_minimum for point in prompt.cache_break_points
    )
    return long_enough and (
        prompt.stable_prefix_unchanged
        or session.sent_prefixes.is_likely(project.project_id, prefix)
    )


class CheckText(Params):
    """A text, and the place in the story whose constraints it must keep."""

    project_id: str
    """The project's id, as `project:create` and `project:list` return it."""
    document_id: DocumentId
    """The document that the text belongs to: constraints with `from` or `until` hold in some
    chapters only."""
    text: Annotated[str, Meta(max_length=LONGEST_CHECKED)]
    """What somebody wrote."""


class CheckedText(Result):
    """Which constraints and terms a text breaks, and which only a reader can judge."""

    verdict: Verdict
    """As after a run; constraints that no rule can check are `unchecked`."""


async def check_text(session: Session, params: CheckText) -> CheckedText:
    """Judge a text by the project's constraints and terms, by rules alone: no model is asked."""
    project = await session.projects.find(params.project_id)
    request = AssembleContext(
        project_id=params.project_id, document_id=params.document_id, cursor_position=0
    )
    made = await assemble_for_client(session, request)
    text = well_formed(params.text)
    verdict = await _judge(
        session,
        project,
        text,
        criteria_of(made.assembly),
        manuscript=made.assembly.plan.language,
        provider=None,
        model="",
    )
    clean = session.redactor.redact
    violations = tuple(replace(one, quote=clean(one.quote).text) for one in verdict.violations)
    shown = in_client_units(replace(verdict, violations=violations), text, utf16=session.peer.utf16)
    return CheckedText(verdict=shown)


async def _judge(
    session: Session,
    project: Project,
    output: str,
    criteria: Criteria,
    *,
    manuscript: ManuscriptLanguage,
    provider: Provider | None,
    model: str,
) -> Verdict:
    terms = criteria.terms
    if terms is None:
        terms = await project_terms(session.tree, project)
    chinese = session.connection.language is Language.CHINESE
    verdict = await judge(
        output,
        criteria.constraints,
        terms or (),
        provider,
        model,
        manuscript=manuscript,
        clean=session.redactor.redact,
        chinese=chinese,
    )
    return add_missing(verdict, criteria, terms, chinese=chinese)


async def _record(
    session: Session, params: RunSkill, run_id: str, provider: str, attempt: Attempt
) -> bool:
    """Record a run; return False if that fails, since the output must not be lost with it."""
    summary = run_summary(attempt.skill_name, params.input or "", attempt.answer.text)
    clean = session.redactor.redact
    usage, prompt = attempt.answer.usage, attempt.prompt
    record = RunRecord(
        run_id=run_id,
        skill_id=session.redactor.hide_secrets(params.skill_id or ""),
        at_ms=session.clock.now_ms(),
        provider=provider,
        model=session.redactor.hide_secrets(attempt.model),
        prompt_hash=prompt.prompt_hash,
        stable_prefix_hash=prompt.stable_prefix_hash,
        token_count=prompt.token_count,
        summary=replace(
            summary,
            skill_name=clean(summary.skill_name).text,
            instruction=clean(summary.instruction).text,
            excerpt=clean(summary.excerpt).text,
        ),
        input_tokens=usage and usage.input_tokens,
        output_tokens=usage and usage.output_tokens,
        cache_read_tokens=usage and usage.cache_read_tokens,
        cache_write_tokens=usage and usage.cache_write_tokens,
        verdict=attempt.verdict.status,
    )
    try:
        await session.runs.record(params.project_id, params.document_id, record)
    except DaemonError as error:
        log.warning("ai_run_not_recorded", run_id=run_id, code=error.code)
        return False
    return True


def run_summary(skill_name: str, instruction: str, output: str) -> RunSummary:
    """Summarise a run: the skill, its instruction, and how its output begins and ends."""
    return RunSummary(
        skill_name=_one_line(skill_name),
        instruction=_head(_one_line(instruction), LONGEST_INSTRUCTION),
        excerpt=run_excerpt(output),
        characters=len(output),
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())


def run_excerpt(text: str) -> str:
    """Return beginning and end; of a long text nothing else is read."""
    if len(text) > 2 * _SIDE:
        head, tail = _one_line(text[:_SIDE]), _one_line(text[-_SIDE:])
        return f"{_head(head, HEAD)} …… {_tail(tail, TAIL)}"
    line = _one_line(text)
    return line if len(line) <= HEAD + TAIL else f"{_head(line, HEAD)} …… {_tail(line, TAIL)}"


def _head(text: str, limit: int) -> str:
    """Return the beginning, up to the end of a sentence if there is one in its second half."""
    if len(text) <= limit:
        return text
    ends = list(sentences(text, limit // 2, limit))
    return text[: ends[-1] if ends else grapheme_floor(text, limit)].rstrip()


def _tail(text: str, limit: int) -> str:
    """Return the end, from the beginning of a sentence if there is one in its first half."""
    start = max(0, len(text) - limit)
    sentence = next(sentences(text, start, start + limit // 2), None)
    return text[grapheme_ceiling(text, start) if sentence is None else sentence :]


def _earlier(attempt: Attempt, *, utf16: bool) -> EarlierAttempt:
    return EarlierAttempt(
        output=attempt.answer.text,
        verdict=in_client_units(attempt.verdict, attempt.answer.text, utf16=utf16),
        usage=_usage(attempt),
    )


def _usage(attempt: Attempt) -> RunUsage:
    estimate, usage = attempt.prompt.token_count, attempt.answer.usage
    if usage is None:
        return RunUsage(estimated_input_tokens=estimate)
    return RunUsage(
        estimated_input_tokens=estimate,
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        difference=usage.input_tokens - estimate,
    )


def _refs_in(prompt: AssembleResult) -> list[str]:
    """List the references in a prompt, in their order, as they stand in it.

    Of a document of which the prompt has a part, only the reference that names the part.
    """
    layers = prompt.layers
    sources = {*layers.rules.source, *layers.settings.source}
    sources.update(layers.retrieved.source, layers.immediate.source)
    found = (_AFTER_CURSOR.sub("", ref) for ref in _REF.findall(prompt.prompt))
    refs = dict.fromkeys(ref for ref in found if ref[4:].partition("#")[0] in sources)
    in_part = {ref.partition("#L")[0] for ref in refs if "#L" in ref}
    return [ref for ref in refs if ref not in in_part]


def _diagnostics(prompt: AssembleResult, *, prefix_marked: bool) -> Diagnostics:
    return Diagnostics(
        stable_prefix_hash=prompt.stable_prefix_hash,
        prompt_hash=prompt.prompt_hash,
        stable_prefix_unchanged=prompt.stable_prefix_unchanged,
        assembly_order=prompt.assembly_order,
        warnings=prompt.warnings,
        notices=prompt.notices,
        budget=prompt.budget,
        trim_evidence=prompt.trim_evidence,
        redaction_evidence=prompt.redaction_evidence,
        cache_break_points=prompt.cache_break_points,
        tokenizer_id=prompt.tokenizer_id,
        tokenizer_version=prompt.tokenizer_version,
        tokenizer_exact=prompt.tokenizer_exact,
        count_kind=prompt.count_kind,
        count_tokens=prompt.count_tokens,
        count_correction=prompt.count_correction,
        prefix_change=prompt.prefix_change,
        target_tokens=prompt.target_tokens,
        token_count=prompt.token_count,
        fixed_tokens=prompt.fixed_tokens,
        layers=prompt.layers,
        prefix_marked=prefix_marked,
    )


class _Run(NamedTuple):
    owner: str
    scope: anyio.CancelScope


class SkillRuns:
    """Skill runs by their id, each with the connection that started it."""

    def __init__(self) -> None:
        self._runs: dict[str, _Run] = {}

    @contextlib.contextmanager
    def register(self, run_id: str, owner: str) -> Generator[None]:
        """Register a run for the block; cancelled, it fails with CANCELED.

        CONFLICT if the id is in use.
        """
        if run_id in self._runs:
            raise DaemonError(
                ErrorCode.CONFLICT, "A run with this runId is under way; use another.", runId=run_id
            )
        with anyio.CancelScope() as scope:
            self._runs[run_id] = _Run(owner, scope)
            try:
                yield
            finally:
                del self._runs[run_id]
        # Also if it finished meanwhile: after a successful cancel nobody must get a result.
        if scope.cancel_called:
            raise DaemonError(ErrorCode.CANCELED, "The run was cancelled.", runId=run_id)

    def cancel(self, run_id: str, asker: str, *, any_run: bool) -> bool:
        """Cancel a run and its upstream call; False if there is none that the asker may cancel."""
        run = self._runs.get(run_id)
        if run is None or not (any_run or run.owner == asker):
            return False
        run.scope.cancel()
        return True
