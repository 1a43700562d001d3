"""`context:build`: the context of one turn of a conversation."""

from typing import Annotated, NamedTuple

import structlog
from anyio import current_effective_deadline, current_time, move_on_after, to_thread
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from creonowd.context.budget import CountCorrection, corrected_total
from creonowd.context.fragment import Caution, caution, show
from creonowd.context.result import BoundedCount
from creonowd.context.text_tools import TextTools, TokenizerFailedError
from creonowd.context_files.files import ConversationKey, FileRequest
from creonowd.engine.services import InConversation, MeteredProvider, Session
from creonowd.errors import DaemonError, WarningCode
from creonowd.history.budget_fit import PINNED, summary_policy, total_tokens
from creonowd.history.build_result import BuildResult, Part, PartSummary, SummaryNote
from creonowd.history.code_law import CodeLaw
from creonowd.history.histories import History, StoredSummary, put_message, stored_summary
from creonowd.history.round_archive import register_rounds
from creonowd.history.rounds import Speaker, call_texts
from creonowd.history.summary import ModelSummariser, extractive_summary
from creonowd.history.tool_result import TodoItem
from creonowd.history.tool_summary import ref_in
from creonowd.history.turn import TurnContext, TurnPlan, TurnRequest, fit_turn, plan_turn
from creonowd.providers.provider import Provider
from creonowd.threads import call_in_thread
from creonowd.tokens import ByteTokenizer
from creonowd.tokens.models import CountKind
from creonowd.workspace.projects import Project

LONGEST_OBSERVATION = 256 * 1024
HIGHEST_BUDGET = 2_000_000

log = structlog.stdlib.get_logger(__name__)


class BuildContext(InConversation):
    """What the next turn of a conversation is about."""

    input: str
    """The user's new message; this call does not keep it. Empty, or the request of an unfinished
    last round: the turn goes on with that round."""
    system_prompt: str
    """The system prompt; it is never cut."""
    tool_prompts: tuple[str, ...] = ()
    """What describes the tools; it follows the system prompt and is never cut."""
    todo: tuple[TodoItem, ...] | None = None
    """The list of things to do; a recap of it stands last."""
    budget_tokens: Annotated[int, Meta(ge=1, le=HIGHEST_BUDGET)] | None = None
    """The most that all messages together may have; without it, the project's budget."""
    model: Annotated[str, Meta(max_length=256)] | None = None
    """Decides how tokens are counted; without it, the project's budget does."""


class BuiltTurn(NamedTuple):
    """A turn and all that its result reports."""

    history: History
    law: CodeLaw
    tools: TextTools
    plan: TurnPlan
    context: TurnContext


class CountInfo(NamedTuple):
    """How counts relate to the model's own, and what real runs taught about that."""

    kind: CountKind
    correction: CountCorrection | None


async def history_of(session: Session, params: InConversation) -> History:
    """Read the history of a conversation, once it is known to be the project's."""
    await session.projects.find(params.project_id)
    key = ConversationKey(params.project_id, params.conversation_id)
    await session.files.run(session.files.store.find, *key)
    return await session.histories.read(key)


async def build_context(session: Session, params: BuildContext) -> BuildResult:
    """Build the messages of a turn, in the fixed order and within the budget."""
    history = await history_of(session, params)
    project = await session.projects.find(params.project_id)
    law = await to_thread.run_sync(session.code_laws.current, project.root)
    tools, kind, correction = await _text_tools(session, project, params.model)
    budget = params.budget_tokens or session.settings.history_budget_tokens
    params = replace(params, budget_tokens=corrected_total(budget, correction))
    try:
        turn = await _build(session, params, history, law, tools)
    except TokenizerFailedError:
        turn = await _build(session, params, history, law, tools.with_tokenizer(ByteTokenizer()))
    return await call_in_thread(_result, session, params, turn, CountInfo(kind, correction))


async def _text_tools(
    session: Session, project: Project, model: str | None
) -> tuple[TextTools, CountKind, CountCorrection | None]:
    """Return the text tools, how their counts relate to the model's own, and what runs taught."""
    profile = (await session.budgets.effective(project.project_id)).profile
    match = session.tokenizers.known.encoding_for(model or profile.model, profile.tokenizer_id)
    tokenizer = await session.tokenizers.get(match.encoding)
    tools = TextTools(tokenizer, session.redactor, session.engine.memory)
    return tools, match.kind, session.corrections.of(model or profile.model, match.kind)


async def _build(
    session: Session, params: BuildContext, history: History, law: CodeLaw, tools: TextTools
) -> BuiltTurn:
    policy = summary_policy(session.settings, params.budget_tokens)
    request = TurnRequest(
        system_prompt=params.system_prompt,
        code_law=law.text or "",
        tool_prompts=params.tool_prompts,
        input=params.input,
        todo=params.todo or (),
        budget=params.budget_tokens or session.settings.history_budget_tokens,
        observations=await _observations(session, params, history),
    )
    plan = await call_in_thread(plan_turn, request, history, policy, tools)
    if plan.input_too_long:
        preview = await _input_preview(session, params, history)
        request = replace(request, input_preview=preview)
        plan = await call_in_thread(plan_turn, request, history, policy, tools)
    history = await _with_model_summary(session, params, history, plan.covers)
    plan, context = await _fit(session, params, history, plan, tools)
    return BuiltTurn(history, law, tools, plan, context)


async def _input_preview(session: Session, params: BuildContext, history: History) -> str:
    """Keep an input that alone does not fit as a context file, and return its head and tail."""
    content = params.input or (history.rounds[-1].request if history.rounds else "")
    key = ConversationKey(params.project_id, params.conversation_id)
    put = await put_message(session.files, key, Speaker.USER, content)
    return "" if put.preview is None else put.preview.text


async def _fit(
    session: Session, params: BuildContext, history: History, plan: TurnPlan, tools: TextTools
) -> tuple[TurnPlan, TurnContext]:
    """Fit a turn, and name in its summary the context file with the rounds that it covers.

    How many rounds fit decides which file that is, and its name takes room too: so this is done
    until both agree.
    """
    policy = summary_policy(session.settings, params.budget_tokens)
    archives: dict[int, str] = {}
    covers = plan.covers
    while True:
        if covers:
            archives[covers] = await _archive(session, params, covers)
        plan = replace(plan, request=replace(plan.request, archives=archives))
        context = await call_in_thread(fit_turn, plan, history, policy, tools)
        covers = context.draft.covers
        if not covers or covers in archives:
            return plan, context


async def _archive(session: Session, params: BuildContext, covers: int) -> str:
    """Return the context file of the first rounds; nothing if it cannot be stored."""
    key = ConversationKey(params.project_id, params.conversation_id)
    try:
        return (await register_rounds(session.files, key, covers)).id
    except DaemonError as error:
        log.warning("history_archive_failed", project_id=params.project_id, code=error.code)
        return ""


async def _observations(session: Session, params: BuildContext, history: History) -> dict[str, str]:
    """Read the full results of the unfinished round, by ref; one that is gone is skipped."""
    if not history.rounds or history.rounds[-1].is_finished:
        return {}
    key = ConversationKey(params.project_id, params.conversation_id)
    found: dict[str, str] = {}
    for message in history.rounds[-1].messages:
        ref = ref_in(message.content) if message.role is Speaker.TOOL else None
        if ref is None:
            continue
        try:
            page = await session.files.read(FileRequest(key, ref), 0, LONGEST_OBSERVATION)
        except DaemonError:
            continue
        note = "" if page.done else f"\n[… the rest is context file {ref}: context.read …]"
        found[ref] = page.content + note
    return found


async def _with_model_summary(
    session: Session, params: BuildContext, history: History, covers: int
) -> History:
    """Have a model summarise the first rounds, once, if the settings ask for that."""
    if session.settings.history_summariser != "model" or not covers or covers in history.summaries:
        return history
    profile = (await session.budgets.effective(params.project_id)).profile
    left = current_effective_deadline() - current_time()

    async def metered_provider() -> Provider:
        return MeteredProvider(await session.ai.current(), session, params.project_id)

    summariser = ModelSummariser(
        metered_provider,
        session.ai.model(profile.model),
        session.redactor,
        seconds=min(session.settings.history_summary_timeout_ms / 1000, left / 3),
    )
    key = ConversationKey(params.project_id, params.conversation_id)
    summary = StoredSummary(covers=covers, summary=extractive_summary(history.rounds[:covers]))
    # A turn that waits for a model, or for another turn that does, must still have time to build.
    with move_on_after(left * 2 / 3):
        summary = await stored_summary(summariser, session.histories, key, history, covers)
    return history.with_summary(summary)


def _result(
    session: Session, params: BuildContext, turn: BuiltTurn, counting: CountInfo
) -> BuildResult:
    kind = counting.kind if turn.tools.tokenizer.exact else CountKind.APPROXIMATE
    context, draft = turn.context, turn.context.draft
    messages = context.messages
    parts = list(dict.fromkeys(piece.part for piece in context.pieces))
    static = [piece for piece in context.pieces if piece.part in PINNED - {Part.USER_INPUT}]
    key = ConversationKey(params.project_id, params.conversation_id)
    evidence = [piece.evidence for piece in draft.pieces]
    warnings, notices = show(_warnings(turn), session.connection.language)
    return BuildResult(
        messages=messages,
        token_count=context.tokens,
        budget_tokens=draft.budget,
        assembly_order=parts,
        parts=[_part_summary(part, context) for part in parts],
        total_rounds=len(turn.history.rounds),
        recent_rounds=len(draft.rounds),
        summary=_summary_note(turn),
        steps=draft.steps,
        trim_evidence=[context.summarised, *evidence] if context.summarised else evidence,
        redaction_evidence=turn.plan.redactions,
        prefix=session.last_turns.compare(key, messages, len(static), total_tokens(static)),
        code_law_needed=not turn.law.exists,
        warnings=warnings,
        notices=notices,
        tokenizer_id=turn.tools.tokenizer.id,
        tokenizer_version=turn.tools.tokenizer.version,
        tokenizer_exact=kind is CountKind.EXACT,
        count_kind=kind,
        count_tokens=_both_counts(turn),
        count_correction=counting.correction or UNSET,
    )


def _both_counts(turn: BuiltTurn) -> BoundedCount | UnsetType:
    base = turn.tools.tokenizer.base
    if base is None:
        return UNSET
    messages = turn.context.messages
    texts = (text for one in messages for text in (one.content, *call_texts(one)) if text)
    return BoundedCount(counted=sum(map(base.count, texts)), bound=turn.context.tokens)


def _part_summary(part: Part, context: TurnContext) -> PartSummary:
    pieces = [piece for piece in context.pieces if piece.part is part]
    return PartSummary(part=part, messages=len(pieces), tokens=total_tokens(pieces))


def _summary_note(turn: BuiltTurn) -> SummaryNote | UnsetType:
    draft = turn.context.draft
    if not draft.of(Part.SUMMARY):
        return UNSET
    stored = turn.history.summaries.get(draft.covers)
    by_model = stored is not None and stored.by_model
    return SummaryNote(
        covers_rounds=draft.covers,
        by="model" if by_model else "extractive",
        shortened=draft.shortened,
    )


def _warnings(turn: BuiltTurn) -> list[Caution]:
    warnings = list(turn.history.warnings)
    stored = turn.history.summaries.get(turn.plan.covers)
    if stored is not None and not stored.by_model:
        warnings.append(caution(WarningCode.SUMMARY_FALLBACK))
    if turn.law.problem:
        warnings.append(caution(WarningCode.CODE_LAW_UNAVAILABLE))
    if not turn.tools.tokenizer.exact:
        warnings.append(caution(WarningCode.CONTEXT_BUDGET_FALLBACK))
    return warnings
