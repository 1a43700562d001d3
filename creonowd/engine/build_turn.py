"""`context:build`, `context:codelaw:status` — the context of one turn of a conversation."""

from typing import Annotated, NamedTuple

from anyio import current_effective_deadline, current_time, move_on_after, to_thread
from msgspec import UNSET, Meta, UnsetType

from creonowd.context.text_tools import TextTools, TokenizerFailedError
from creonowd.context_files.files import ConversationKey, FileRequest
from creonowd.engine.services import InConversation, Session
from creonowd.errors import DaemonError, WarningCode, warning_text
from creonowd.history import turn
from creonowd.history.budget_fit import PINNED, summary_policy, total
from creonowd.history.build_result import BuildResult, Part, PartSummary, SummaryNote
from creonowd.history.code_law import CodeLaw
from creonowd.history.histories import History, Written
from creonowd.history.rounds import Speaker
from creonowd.history.summarise import ByModel, extracted, settled
from creonowd.history.tool_result import TodoItem
from creonowd.history.tool_summary import ref_in
from creonowd.history.turn import Built, Prepared, TurnRequest
from creonowd.tokens import ByteTokenizer
from creonowd.tokens.tables import encoding_for
from creonowd.workspace.projects import Project

LONGEST_OBSERVATION = 256 * 1024
HIGHEST_BUDGET = 2_000_000


class BuildContext(InConversation):
    """What the next turn is about. `input` is what the user says now; it is not kept by this call.

    If the last round is unfinished and `input` is its request (or empty), the turn goes on with
    it. `model` decides how tokens are counted, else the project's budget does.
    """

    input: str
    system_prompt: str
    tool_prompts: tuple[str, ...] = ()
    todo: tuple[TodoItem, ...] | None = None
    budget_tokens: Annotated[int, Meta(ge=1, le=HIGHEST_BUDGET)] | None = None
    model: Annotated[str, Meta(max_length=256)] | None = None


async def history_of(session: Session, params: InConversation) -> History:
    """Find the history of a conversation, once it is known to be the project's."""
    await session.projects.find(params.project_id)
    where = ConversationKey(params.project_id, params.conversation_id)
    await session.files.run(session.files.store.find, *where)
    return await session.histories.read(where)


async def build_context(session: Session, params: BuildContext) -> BuildResult:
    """Build the messages of a turn, in the fixed order and within the budget."""
    history = await history_of(session, params)
    project = await session.projects.find(params.project_id)
    law = await to_thread.run_sync(session.code_laws.current, project.root)
    counted = await _instruments(session, project, params.model)
    try:
        turn = await _turn(session, params, history, law, counted)
    except TokenizerFailedError:
        bytes_ = Counted(counted.instruments.with_tokenizer(ByteTokenizer()), exact=False)
        turn = await _turn(session, params, history, law, bytes_)
    return await to_thread.run_sync(_result, session, params, turn)


class Counted(NamedTuple):
    """What counts, and whether it counts as the model does."""

    instruments: TextTools
    exact: bool


class _Turn(NamedTuple):
    """All that a result tells about."""

    history: History
    law: CodeLaw
    instruments: TextTools
    prepared: Prepared
    built: Built
    exact: bool


async def _turn(
    session: Session, params: BuildContext, history: History, law: CodeLaw, counted: Counted
) -> _Turn:
    instruments, policy = counted.instruments, summary_policy(session.settings)
    wanted = await _wanted(session, params, history, law)
    prepared = await to_thread.run_sync(turn.prepare, wanted, history, policy, instruments)
    history = await _summarised(session, params, history, prepared.covers)
    built = await to_thread.run_sync(turn.compose, prepared, history, policy, instruments)
    return _Turn(history, law, instruments, prepared, built, counted.exact)


async def _instruments(session: Session, project: Project, model: str | None) -> Counted:
    profile = await session.budgets.effective(project.project_id)
    match = encoding_for(model or profile.model, profile.tokenizer_id)
    tokenizer = await session.tokenizers.get(match.encoding)
    made = TextTools(tokenizer, session.redactor, session.engine.memory)
    return Counted(made, match.exact and tokenizer.exact)


async def _wanted(
    session: Session, params: BuildContext, history: History, law: CodeLaw
) -> TurnRequest:
    return TurnRequest(
        system_prompt=params.system_prompt,
        code_law=law.text or "",
        tool_prompts=params.tool_prompts,
        input=params.input,
        todo=params.todo or (),
        budget=params.budget_tokens or session.settings.history_budget_tokens,
        observations=await _observations(session, params, history),
    )


async def _observations(session: Session, params: BuildContext, history: History) -> dict[str, str]:
    """Fetch the full results of the unfinished round; one that is gone is told in brief."""
    if not history.rounds or history.rounds[-1].finished:
        return {}
    where = ConversationKey(params.project_id, params.conversation_id)
    found: dict[str, str] = {}
    for message in history.rounds[-1].messages:
        ref = ref_in(message.content) if message.role is Speaker.TOOL else None
        if ref is None:
            continue
        try:
            page = await session.files.read(FileRequest(where, ref), 0, LONGEST_OBSERVATION)
        except DaemonError:
            continue
        note = "" if page.done else f"\n[… the rest is context file {ref}: context.read …]"
        found[ref] = page.content + note
    return found


async def _summarised(
    session: Session, params: BuildContext, history: History, covers: int
) -> History:
    """Have a model write the summary, once, if the settings ask for one."""
    if session.settings.history_summariser != "model" or not covers or covers in history.written:
        return history
    profile = await session.budgets.effective(params.project_id)
    model = session.ai.model(profile.model)
    left = current_effective_deadline() - current_time()
    seconds = min(session.settings.history_summary_timeout_ms / 1000, left / 3)
    by_model = ByModel(session.ai, model, session.redactor, seconds)
    where = ConversationKey(params.project_id, params.conversation_id)
    written = Written(covers=covers, summary=extracted(history.rounds[:covers]))
    # Whoever waits for a model, or for another who does, must still have time to build.
    with move_on_after(left * 2 / 3):
        written = await settled(by_model, session.histories, where, history, covers)
    return history.with_summary(written)


def _result(session: Session, params: BuildContext, turn: _Turn) -> BuildResult:
    built, draft = turn.built, turn.built.draft
    messages = built.messages
    static = [piece for piece in built.pieces if piece.part in PINNED - {Part.USER_INPUT}]
    key = ConversationKey(params.project_id, params.conversation_id)
    evidence = [piece.evidence for piece in draft.pieces]
    return BuildResult(
        messages=messages,
        token_count=built.tokens,
        budget_tokens=draft.budget,
        assembly_order=list(dict.fromkeys(piece.part for piece in built.pieces)),
        parts=_parts(built),
        total_rounds=len(turn.history.rounds),
        recent_rounds=len(draft.rounds),
        summary=_note(turn),
        steps=draft.steps,
        trim_evidence=([built.summarised] if built.summarised else []) + evidence,
        redaction_evidence=turn.prepared.evidence,
        prefix=session.last_turns.compare(key, messages, len(static), total(static)),
        code_law_needed=not turn.law.exists,
        warnings=_warnings(turn),
        tokenizer_id=turn.instruments.tokenizer.id,
        tokenizer_version=turn.instruments.tokenizer.version,
        tokenizer_exact=turn.exact,
    )


def _parts(built: Built) -> list[PartSummary]:
    parts = dict.fromkeys(piece.part for piece in built.pieces)
    return [
        PartSummary(part=part, messages=len(pieces), tokens=total(pieces))
        for part in parts
        if (pieces := [piece for piece in built.pieces if piece.part is part])
    ]


def _note(turn: _Turn) -> SummaryNote | UnsetType:
    draft = turn.built.draft
    if not draft.of(Part.SUMMARY):
        return UNSET
    written = turn.history.written.get(draft.covers)
    by_model = written is not None and written.by_model
    return SummaryNote(
        covers_rounds=draft.covers,
        by="model" if by_model else "extractive",
        shortened=draft.shortened,
    )


def _warnings(turn: _Turn) -> list[str]:
    written = turn.history.written.get(turn.prepared.covers)
    fallen_back = written is not None and not written.by_model
    return [
        *turn.history.warnings,
        *([warning_text(WarningCode.SUMMARY_FALLBACK)] if fallen_back else []),
        *([warning_text(WarningCode.CODE_LAW_UNAVAILABLE)] if turn.law.problem else []),
        *(
            []
            if turn.instruments.tokenizer.exact
            else [warning_text(WarningCode.CONTEXT_BUDGET_FALLBACK)]
        ),
    ]
