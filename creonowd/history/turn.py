"""One turn of a conversation: the messages of each part, redacted, in their order, within the budget."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import partial

from msgspec import field
from msgspec.structs import replace

from creonowd.context.fragment import Action
from creonowd.context.text_tools import TextTools
from creonowd.errors import DaemonError, ErrorCode
from creonowd.history.budget_fit import (
    Costs,
    Draft,
    Piece,
    RoundCost,
    SummaryPolicy,
    SummaryThreshold,
    fit,
    message_cost,
    summary_cut,
    total_tokens,
)
from creonowd.history.build_result import BuildEvidence, Part, Step
from creonowd.history.histories import History
from creonowd.history.rounds import Message, Round, Speaker, pair
from creonowd.history.summary import (
    NO_REF,
    HistorySummary,
    archive_line,
    extractive_summary,
    fact_count,
    go_on_from,
    item_count,
    render_summary,
    to_one_sentence,
    with_items,
)
from creonowd.history.tool_result import TodoItem, summarise_todo
from creonowd.history.tool_summary import ref_in
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.tokens import exceeds

# A text with more characters per token of the budget is checked before anything else is done.
_MANY_CHARACTERS = 64


class TurnRequest(Model):
    """The texts of a turn; `observations` are the full results of the unfinished round, by ref.

    `input_preview` stands for an input that alone does not fit. `archives` are the context files
    with the first rounds in full, by how many rounds they hold.
    """

    system_prompt: str
    input: str
    budget: int
    code_law: str = ""
    tool_prompts: tuple[str, ...] = ()
    todo: tuple[TodoItem, ...] = ()
    observations: dict[str, str] = field(default_factory=dict[str, str])
    input_preview: str = ""
    archives: dict[int, str] = field(default_factory=dict[int, str])


class TurnPlan(Model):
    """A turn, redacted: its pinned pieces, the rounds before it, and how many are summarised."""

    request: TurnRequest
    static: list[Piece]
    current: list[Piece]
    past: tuple[Round, ...]
    covers: int
    covered: RoundCost
    tool_summaries: dict[str, str]
    redactions: list[RedactionEvidence]

    @property
    def input_too_long(self) -> bool:
        """Whether everything that is pinned would fit but for the input."""
        fixed = total_tokens(self.static)
        pinned = [piece for piece in self.current if piece.part is Part.USER_INPUT]
        return fixed < self.request.budget < fixed + total_tokens(pinned)


class TurnContext(Model):
    """The context of a turn, within the budget."""

    draft: Draft
    summarised: BuildEvidence | None

    @property
    def pieces(self) -> list[Piece]:
        """The pieces that are in it, in their order."""
        return [piece for piece in self.draft.pieces if not piece.dropped]

    @property
    def messages(self) -> list[Message]:
        """The messages for the model."""
        return [piece.message for piece in self.pieces]

    @property
    def tokens(self) -> int:
        """The exact count."""
        return total_tokens(self.draft.pieces)


def plan_turn(
    request: TurnRequest, history: History, policy: SummaryPolicy, tools: TextTools
) -> TurnPlan:
    """Redact a turn, count what is pinned, and find how many rounds the summary covers."""
    _check_length(request, tools)
    clean, redactions = _redact(request, tools)
    static = list(_static_pieces(clean, tools))
    current, tool_summaries = _current_pieces(clean, history, tools)
    past = history.rounds[:-1] if _continues(clean, history) else history.rounds
    threshold = SummaryThreshold(
        tokenizer=tools.tokenizer.id,
        fixed=total_tokens(static),
        limit=policy.summary_at * clean.budget,
        keep=policy.keep,
        policy=policy,
    )
    costs = Costs(
        partial(_round_cost, tools=tools),
        partial(_summary_cost, history, policy, tools),
        sorted(history.summaries),
    )
    cut = summary_cut(past, total_tokens(current), threshold, costs)
    return TurnPlan(
        request=clean,
        static=static,
        current=current,
        past=past,
        covers=cut.covers,
        covered=cut.covered,
        tool_summaries=tool_summaries,
        redactions=redactions,
    )


def fit_turn(
    plan: TurnPlan, history: History, policy: SummaryPolicy, tools: TextTools
) -> TurnContext:
    """Put the parts into their order and make them fit the budget."""

    def summary_text(covers: int, *, brief: bool = False) -> str:
        later = plan.past[covers:]
        summary = _summary(history, policy, tools, covers, later)
        shown = to_one_sentence(summary) if brief else summary
        return _summary_text(shown, covers, plan.request.archives)

    recent = plan.past[plan.covers :]
    rounds = _recent_pieces(recent, tools)
    summary: list[Piece] = []
    if plan.covers:
        content = summary_text(plan.covers)
        message = Message(role=Speaker.SYSTEM, content=content)
        summary = [Piece(Part.SUMMARY, "history summary", message, tools.count(content))]
    todo = _todo_pieces(plan.request, tools)
    draft = Draft(
        [*plan.static, *summary, *rounds, *plan.current, *todo],
        plan.request.budget,
        plan.covers,
        floor=policy.floor,
        count=tools.count,
        summary_text=summary_text,
        tool_summaries=plan.tool_summaries,
    )
    fit(draft)
    return TurnContext(draft=draft, summarised=_summary_evidence(plan))


def _check_length(request: TurnRequest, tools: TextTools) -> None:
    """Fail if a text is too long for the budget, before all of it is redacted and counted."""
    pinned = {
        Part.SYSTEM_PROMPT: [request.system_prompt],
        Part.CODE_LAW: [request.code_law],
        Part.TOOL_PROMPTS: request.tool_prompts,
    }
    for part, texts in pinned.items():
        for text in texts:
            long = len(text) > _MANY_CHARACTERS * request.budget
            if long and exceeds(text, request.budget, tools.tokenizer):
                raise DaemonError(
                    ErrorCode.CONTEXT_INPUT_TOO_LARGE,
                    f"The {part.replace('_', ' ')} alone does not fit; shorten it or raise"
                    " budgetTokens.",
                    budgetTokens=request.budget,
                    heaviest=part,
                )


def _redact(request: TurnRequest, tools: TextTools) -> tuple[TurnRequest, list[RedactionEvidence]]:
    evidence: list[RedactionEvidence] = []

    def clean(text: str, ref: str) -> str:
        redacted = tools.redact(text)
        evidence.extend(redacted.evidence(ref))
        return redacted.text

    redacted = replace(
        request,
        system_prompt=clean(request.system_prompt, "system prompt"),
        code_law=clean(request.code_law, "code_law.md"),
        tool_prompts=tuple(
            clean(text, f"tool prompt {n}") for n, text in enumerate(request.tool_prompts, start=1)
        ),
        input=clean(request.input, "user input"),
        todo=tuple(
            TodoItem(text=clean(item.text, f"todo {n}"), status=item.status)
            for n, item in enumerate(request.todo, start=1)
        ),
    )
    return redacted, evidence


def _static_pieces(request: TurnRequest, tools: TextTools) -> Iterator[Piece]:
    """Make the pieces that do not change from turn to turn."""
    texts = [
        (Part.SYSTEM_PROMPT, "system prompt", request.system_prompt),
        (Part.CODE_LAW, "code_law.md", request.code_law),
        *(
            (Part.TOOL_PROMPTS, f"tool prompt {n}", text)
            for n, text in enumerate(request.tool_prompts, start=1)
        ),
    ]
    for part, ref, text in texts:
        if text:
            message = Message(role=Speaker.SYSTEM, content=text)
            yield Piece(part, ref, message, tools.count(text))


def _continues(request: TurnRequest, history: History) -> bool:
    """Return whether this turn goes on with the unfinished round instead of beginning one."""
    if not history.rounds:
        return False
    last = history.rounds[-1]
    return not last.is_finished and (not request.input or last.request == request.input)


def _current_pieces(
    request: TurnRequest, history: History, tools: TextTools
) -> tuple[list[Piece], dict[str, str]]:
    """Make the pieces of the input, and of what the model has done about it so far."""
    if not _continues(request, history):
        if not request.input:
            raise DaemonError(
                ErrorCode.INVALID_ARGUMENT,
                "input is empty and no round is unfinished.",
                field="input",
            )
        return [_input_piece(Message(role=Speaker.USER, content=request.input), request, tools)], {}
    last = history.rounds[-1]
    pieces, tool_summaries = _full_round(last, request, tools)
    if last.request:
        pieces[0] = _input_piece(pieces[0].message, request, tools)
    return pieces, tool_summaries


def _input_piece(message: Message, request: TurnRequest, tools: TextTools) -> Piece:
    """Make the piece of the input: whole, or its preview if it alone does not fit."""
    if not request.input_preview:
        return Piece(Part.USER_INPUT, "user input", message, tools.count(message.content))
    short = replace(message, content=request.input_preview)
    piece = Piece(Part.USER_INPUT, "user input", short, tools.count(short.content))
    piece.mark(Step.INPUT_PREVIEW, (len(message.content), tools.count(message.content)))
    return piece


def _recent_pieces(rounds: Sequence[Round], tools: TextTools) -> list[Piece]:
    """Make the pieces of rounds as a later turn sees them, also of one that was broken off."""
    return [
        Piece(Part.RECENT_MESSAGES, _ref(one, n), message, tokens, round_=one.index)
        for one in rounds
        for n, (message, tokens) in enumerate(
            zip(one.view, _round_cost(one, tools).messages, strict=True)
        )
    ]


def _full_round(
    one: Round, request: TurnRequest, tools: TextTools
) -> tuple[list[Piece], dict[str, str]]:
    """Make the pieces of a round with its full tool results, and return their summaries by ref."""
    pieces: list[Piece] = []
    tool_summaries: dict[str, str] = {}
    for number, message in enumerate(pair(one.messages)):
        ref = ref_in(message.content) if message.role is Speaker.TOOL else None
        full = request.observations.get(ref or "")
        visible = message if full is None else replace(message, content=full)
        tokens = message_cost(visible, tools.count)
        source = _ref(one, number)
        pieces.append(Piece(Part.RECENT_MESSAGES, source, visible, tokens))
        if full is not None:
            tool_summaries[source] = message.content
    return pieces, tool_summaries


def _ref(one: Round, number: int) -> str:
    return f"round {one.index + 1}, message {number + 1}"


def _todo_pieces(request: TurnRequest, tools: TextTools) -> list[Piece]:
    if not request.todo:
        return []
    message = Message(role=Speaker.SYSTEM, content=f"[Todo] {summarise_todo(request.todo)}")
    return [Piece(Part.TODO_RECAP, "todo", message, tools.count(message.content))]


def _round_cost(one: Round, tools: TextTools) -> RoundCost:
    """Count a round as a later turn sees it, once for each tokenizer."""
    cost = one.recall(tools.tokenizer.id)
    if cost is None:
        messages = tuple(message_cost(message, tools.count) for message in one.view)
        characters = sum(len(message.content) for message in one.view)
        request = messages[0] if one.request else 0
        cost = RoundCost(request, sum(messages), characters, messages)
        one.remember(tools.tokenizer.id, cost)
    return cost


def _summary(
    history: History,
    policy: SummaryPolicy,
    tools: TextTools,
    covers: int,
    later: Sequence[Round] = (),
) -> HistorySummary:
    """Return the summary of the first rounds within the room that it may take.

    It names as many facts as fit, without those that `later` rounds correct. If one that a model
    wrote is too long and its lists cannot be shortened, each line is cut to one sentence.
    """
    room = _summary_room(history.rounds[:covers], policy, tools)
    written = [n for n, stored in history.summaries.items() if n <= covers and stored.by_model]
    if written:
        last = max(written)
        summary = history.summaries[last].summary
        if last < covers:
            summary = go_on_from(
                summary, extractive_summary(history.rounds[last:covers], later=later)
            )
        return _written_in_room(summary, room, tools)
    rounds = history.rounds[:covers]
    key = (tools.tokenizer.id, "facts", room)
    most = rounds[-1].recall(key)
    if most is None:
        most = _facts_that_fit(rounds, room, tools)
        rounds[-1].remember(key, most)
    return extractive_summary(rounds, most, later)


def _written_in_room(summary: HistorySummary, room: int, tools: TextTools) -> HistorySummary:
    """Shorten the lists of a written summary until it fits; as a last resort all of its lines."""

    def is_too_long(most: int) -> bool:
        return tools.count(render_summary(with_items(summary, most))) > room

    most = bisect_left(range(item_count(summary) + 1), x=True, lo=1, key=is_too_long) - 1
    return with_items(summary, most) if most else to_one_sentence(summary)


def _summary_room(rounds: Sequence[Round], policy: SummaryPolicy, tools: TextTools) -> int:
    """Return how many tokens a summary may have: a share of the tokens of its rounds.

    Counting stops at the round with which the largest summary is allowed.
    """
    freed = share = 0
    for one in rounds:
        freed += _round_cost(one, tools).total
        share = int(policy.summary_share * freed)
        if share >= policy.most_tokens:
            break
    return max(policy.summary_tokens, min(policy.most_tokens, share))


def _facts_that_fit(rounds: Sequence[Round], room: int, tools: TextTools) -> int:
    """Return the largest number of facts with which a summary fits into the room."""

    def is_too_long(most: int) -> bool:
        return tools.count(render_summary(extractive_summary(rounds, most))) > room

    numbers = range(fact_count(rounds) + 1)
    return max(0, bisect_left(numbers, x=True, key=is_too_long) - 1)


def _summary_text(summary: HistorySummary, covers: int, archives: dict[int, str]) -> str:
    """Render the summary of the first rounds; its last line says where they are in full."""
    ref = archives.get(covers, NO_REF)
    text = render_summary(summary)
    return f"{text}\n{archive_line(covers, ref)}" if ref else text


def _summary_cost(history: History, policy: SummaryPolicy, tools: TextTools, covers: int) -> int:
    last = history.rounds[covers - 1]
    key = (tools.tokenizer.id, policy, covers in history.summaries)
    cost = last.recall(key)
    if cost is None:
        cost = tools.count(_summary_text(_summary(history, policy, tools, covers), covers, {}))
        last.remember(key, cost)
    return cost


def _summary_evidence(plan: TurnPlan) -> BuildEvidence | None:
    """Make one piece of evidence for all rounds that the summary covers."""
    if not plan.covers:
        return None
    return BuildEvidence(
        part=Part.RECENT_MESSAGES,
        source_ref=f"rounds 1 to {plan.covers}",
        action=Action.DROPPED,
        rule=Step.SUMMARISED,
        before_chars=plan.covered.characters,
        after_chars=0,
        before_tokens=plan.covered.total,
        after_tokens=0,
    )
