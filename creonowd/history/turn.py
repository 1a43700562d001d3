"""The pieces of one turn: what each part says, without its secrets.

Knows parts and rounds; which of them stay is decided elsewhere.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import field
from msgspec.structs import replace

from creonowd.context.fragment import Action
from creonowd.context.text_tools import TextTools
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history import budget_fit as drafting
from creonowd.history.budget_fit import (
    Cost,
    Draft,
    Means,
    Piece,
    Prices,
    SummaryPolicy,
    SummaryThreshold,
    cost,
    cut_point,
    fit,
)
from creonowd.history.build_result import BuildEvidence, Part, Step
from creonowd.history.histories import History
from creonowd.history.rounds import Message, Round, Speaker, paired
from creonowd.history.summarise import fitted, summary_of
from creonowd.history.summary import HistorySummary, rendered
from creonowd.history.tool_result import TodoItem, recap
from creonowd.history.tool_summary import ref_in
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.tokens import exceeds

_SURELY_LONG = 64


class TurnRequest(Model):
    """What a turn brings; `observations` are the full results of the unfinished round, by ref."""

    system_prompt: str
    input: str
    budget: int
    code_law: str = ""
    tool_prompts: tuple[str, ...] = ()
    todo: tuple[TodoItem, ...] = ()
    observations: dict[str, str] = field(default_factory=dict[str, str])


def without_secrets(
    wanted: TurnRequest, instruments: TextTools
) -> tuple[TurnRequest, list[RedactionEvidence]]:
    """Take secrets out of all that a turn brings."""
    texts = {
        "system prompt": wanted.system_prompt,
        "code_law.md": wanted.code_law,
        **{f"tool prompt {n}": text for n, text in enumerate(wanted.tool_prompts, start=1)},
        "user input": wanted.input,
        **{f"todo {n}": item.text for n, item in enumerate(wanted.todo, start=1)},
    }
    clean = {ref: instruments.redact(text) for ref, text in texts.items()}
    evidence = [found for ref, one in clean.items() for found in one.evidence(ref)]
    prompts = [one.text for ref, one in clean.items() if ref.startswith("tool prompt ")]
    todo = [
        TodoItem(text=clean[f"todo {n}"].text, status=item.status)
        for n, item in enumerate(wanted.todo, start=1)
    ]
    return (
        TurnRequest(
            system_prompt=clean["system prompt"].text,
            code_law=clean["code_law.md"].text,
            tool_prompts=tuple(prompts),
            input=clean["user input"].text,
            todo=tuple(todo),
            budget=wanted.budget,
            observations=wanted.observations,
        ),
        evidence,
    )


def refuse_endless(wanted: TurnRequest, instruments: TextTools) -> None:
    """Find out cheaply that a text is too long, before it is read from end to end."""
    pinned = {
        Part.SYSTEM_PROMPT: [wanted.system_prompt],
        Part.CODE_LAW: [wanted.code_law],
        Part.TOOL_PROMPTS: wanted.tool_prompts,
        Part.USER_INPUT: [wanted.input],
    }
    for part, texts in pinned.items():
        for text in texts:
            long = len(text) > _SURELY_LONG * wanted.budget
            if long and exceeds(text, wanted.budget, instruments.tokenizer):
                raise DaemonError(
                    ErrorCode.CONTEXT_INPUT_TOO_LARGE,
                    f"The {part.replace('_', ' ')} alone does not fit; shorten it or raise"
                    " budgetTokens.",
                    budgetTokens=wanted.budget,
                    heaviest=part,
                )


def static_pieces(wanted: TurnRequest, instruments: TextTools) -> Iterator[Piece]:
    """Give what does not change from turn to turn."""
    texts = [
        (Part.SYSTEM_PROMPT, "system prompt", wanted.system_prompt),
        (Part.CODE_LAW, "code_law.md", wanted.code_law),
        *(
            (Part.TOOL_PROMPTS, f"tool prompt {n}", text)
            for n, text in enumerate(wanted.tool_prompts, start=1)
        ),
    ]
    for part, ref, text in texts:
        if text:
            message = Message(role=Speaker.SYSTEM, content=text)
            yield Piece(part, ref, message, instruments.count(text))


def continues(wanted: TurnRequest, history: History) -> bool:
    """Whether this turn goes on with the unfinished round instead of beginning one."""
    last = history.rounds[-1]
    return not last.finished and (not wanted.input or last.request == wanted.input)


def current_pieces(
    wanted: TurnRequest, history: History, instruments: TextTools
) -> tuple[list[Piece], dict[str, str]]:
    """Give the input, and what the model has done about it so far."""
    if not history.rounds or not continues(wanted, history):
        if not wanted.input:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT, "input is empty and no round waits.", field="input"
            )
        message = Message(role=Speaker.USER, content=wanted.input)
        tokens = instruments.count(wanted.input)
        return [Piece(Part.USER_INPUT, "user input", message, tokens)], {}
    last = history.rounds[-1]
    pieces, brief = _in_full(last, wanted, instruments, -1)
    if last.request:
        first = pieces[0]
        pieces[0] = Piece(Part.USER_INPUT, "user input", first.message, first.tokens)
    return pieces, brief


def cost_of(one: Round, instruments: TextTools) -> Cost:
    """Count a finished round as a later turn sees it, once in its life."""
    known = one.recall(instruments.tokenizer.id)
    if known is None:
        each = tuple(cost(message, instruments.count) for message in one.view)
        characters = sum(len(message.content) for message in one.view)
        known = Cost(each[0] if one.request else 0, sum(each), characters, each)
        one.remember(instruments.tokenizer.id, known)
    return known


def recent_pieces(
    rounds: Sequence[Round], history: History, wanted: TurnRequest, instruments: TextTools
) -> tuple[list[Piece], dict[str, str]]:
    """Give rounds in brief, an unfinished last one in full."""
    pieces: list[Piece] = []
    brief: dict[str, str] = {}
    for one in rounds:
        if one is history.rounds[-1] and not one.finished:
            full, brief = _in_full(one, wanted, instruments, one.index)
            pieces += full
        else:
            costs = cost_of(one, instruments).each
            pairs = enumerate(zip(one.view, costs, strict=True))
            pieces += [_piece(one, n, message, tokens) for n, (message, tokens) in pairs]
    return pieces, brief


def _in_full(
    one: Round, wanted: TurnRequest, instruments: TextTools, index: int
) -> tuple[list[Piece], dict[str, str]]:
    """Give a round with its full observations, and the summaries they may yield to."""
    pieces: list[Piece] = []
    brief: dict[str, str] = {}
    for number, message in enumerate(paired(one.messages)):
        ref = ref_in(message.content) if message.role is Speaker.TOOL else None
        full = wanted.observations.get(ref or "")
        shown = message if full is None else replace(message, content=full)
        piece = _piece(one, number, shown, cost(shown, instruments.count), index)
        if full is not None:
            brief[piece.source_ref] = message.content
        pieces.append(piece)
    return pieces, brief


def _piece(
    one: Round, number: int, message: Message, tokens: int, index: int | None = None
) -> Piece:
    ref = f"round {one.index + 1}, message {number + 1}"
    belongs = one.index if index is None else index
    return Piece(Part.RECENT_MESSAGES, ref, message, tokens, round_=belongs)


def todo_pieces(wanted: TurnRequest, instruments: TextTools) -> list[Piece]:
    """Give the recap, if there is anything to do."""
    if not wanted.todo:
        return []
    message = Message(role=Speaker.SYSTEM, content=f"[Todo] {recap(wanted.todo)}")
    tokens = instruments.count(message.content)
    return [Piece(Part.TODO_RECAP, "todo", message, tokens)]


class Prepared(Model):
    """A turn without its secrets, its pinned pieces, and how many rounds its summary tells."""

    wanted: TurnRequest
    static: list[Piece]
    now: list[Piece]
    past: tuple[Round, ...]
    gone: Cost
    brief: dict[str, str]
    covers: int
    evidence: list[RedactionEvidence]


class Built(Model):
    """A context that fits."""

    draft: Draft
    summarised: BuildEvidence | None

    @property
    def pieces(self) -> list[Piece]:
        """The pieces that are in it, in their order."""
        return [piece for piece in self.draft.pieces if not piece.dropped]

    @property
    def messages(self) -> list[Message]:
        """What the model gets."""
        return drafting.in_order(self.draft.pieces)

    @property
    def tokens(self) -> int:
        """The exact count."""
        return drafting.total(self.draft.pieces)


def prepare(
    wanted: TurnRequest, history: History, policy: SummaryPolicy, instruments: TextTools
) -> Prepared:
    """Take secrets out, count what is pinned, and find where the summary ends."""
    refuse_endless(wanted, instruments)
    clean, evidence = without_secrets(wanted, instruments)
    static = list(static_pieces(clean, instruments))
    now, brief = current_pieces(clean, history, instruments)
    continued = bool(history.rounds) and continues(clean, history)
    past = history.rounds[:-1] if continued else history.rounds
    line = SummaryThreshold(
        tokenizer=instruments.tokenizer.id,
        fixed=drafting.total(static),
        limit=policy.summary_at * clean.budget,
        keep=policy.keep,
        summary_tokens=policy.summary_tokens,
    )
    prices = Prices(
        partial(cost_of, instruments=instruments),
        partial(_told_cost, history, policy, instruments),
        sorted(history.written),
    )
    cut = cut_point(past, drafting.total(now), line, prices)
    return Prepared(
        wanted=clean,
        static=static,
        now=now,
        past=past,
        gone=cut.gone,
        brief=brief,
        covers=cut.covers,
        evidence=evidence,
    )


def compose(
    prepared: Prepared, history: History, policy: SummaryPolicy, instruments: TextTools
) -> Built:
    """Put the parts into their order and make them fit."""
    told = partial(_told, history, policy, instruments)
    recent = prepared.past[prepared.covers :]
    rounds, brief = recent_pieces(recent, history, prepared.wanted, instruments)
    summary: list[Piece] = []
    if prepared.covers:
        message = Message(role=Speaker.SYSTEM, content=rendered(told(prepared.covers)))
        tokens = drafting.cost(message, instruments.count)
        summary = [Piece(Part.SUMMARY, "history summary", message, tokens)]
    pieces = [
        *prepared.static,
        *summary,
        *rounds,
        *prepared.now,
        *todo_pieces(prepared.wanted, instruments),
    ]
    means = Means(instruments.count, told, {**brief, **prepared.brief}, policy.floor)
    draft = Draft(pieces, prepared.wanted.budget, means, prepared.covers)
    fit(draft)
    return Built(draft=draft, summarised=_summarised(prepared))


def _told(
    history: History, policy: SummaryPolicy, instruments: TextTools, covers: int
) -> HistorySummary:
    summary = summary_of(history, covers)
    return fitted(summary, instruments.count(rendered(summary)), policy.summary_tokens)


def _told_cost(history: History, policy: SummaryPolicy, instruments: TextTools, covers: int) -> int:
    last = history.rounds[covers - 1]
    key = (instruments.tokenizer.id, policy.summary_tokens, covers in history.written)
    known = last.recall(key)
    if known is None:
        known = instruments.count(rendered(_told(history, policy, instruments, covers)))
        last.remember(key, known)
    return known


def _summarised(prepared: Prepared) -> BuildEvidence | None:
    """Account for the rounds that the summary tells, as one."""
    if not prepared.covers:
        return None
    return BuildEvidence(
        part=Part.RECENT_MESSAGES,
        source_ref=f"rounds 1 to {prepared.covers}",
        action=Action.DROPPED,
        rule=Step.SUMMARISED,
        before_chars=prepared.gone.characters,
        after_chars=0,
        before_tokens=prepared.gone.whole,
        after_tokens=0,
    )
