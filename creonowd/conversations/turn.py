"""The pieces of one turn: what each part says, without its secrets.

Knows parts and rounds; which of them stay is decided elsewhere.
"""

from collections.abc import Iterator, Sequence

from msgspec import field
from msgspec.structs import replace

from creonowd.context.text_tools import TextTools
from creonowd.conversations.build_result import Part
from creonowd.conversations.compress import ref_in
from creonowd.conversations.draft import Cost, Piece, cost
from creonowd.conversations.histories import History
from creonowd.conversations.messages import Message, Speaker
from creonowd.conversations.rounds import Round, paired
from creonowd.conversations.todo import TodoItem, recap
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.tokens import exceeds

_SURELY_LONG = 64


class Wanted(Model):
    """What a turn brings; `observations` are the full results of the unfinished round, by ref."""

    system_prompt: str
    input: str
    budget: int
    code_law: str = ""
    tool_prompts: tuple[str, ...] = ()
    todo: tuple[TodoItem, ...] = ()
    observations: dict[str, str] = field(default_factory=dict[str, str])


def without_secrets(
    wanted: Wanted, instruments: TextTools
) -> tuple[Wanted, list[RedactionEvidence]]:
    """Take secrets out of all that a turn brings."""
    texts = {
        "system prompt": wanted.system_prompt,
        "code_law.md": wanted.code_law,
        **{f"tool prompt {n}": text for n, text in enumerate(wanted.tool_prompts, start=1)},
        "user input": wanted.input,
        **{f"todo {n}": item.text for n, item in enumerate(wanted.todo, start=1)},
    }
    clean = {ref: instruments.clean(text) for ref, text in texts.items()}
    evidence = [found for ref, one in clean.items() for found in one.evidence(ref)]
    prompts = [one.text for ref, one in clean.items() if ref.startswith("tool prompt ")]
    todo = [
        TodoItem(text=clean[f"todo {n}"].text, status=item.status)
        for n, item in enumerate(wanted.todo, start=1)
    ]
    return (
        Wanted(
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


def refuse_endless(wanted: Wanted, instruments: TextTools) -> None:
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


def static_pieces(wanted: Wanted, instruments: TextTools) -> Iterator[Piece]:
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


def continues(wanted: Wanted, history: History) -> bool:
    """Whether this turn goes on with the unfinished round instead of beginning one."""
    last = history.rounds[-1]
    return not last.finished and (not wanted.input or last.request == wanted.input)


def current_pieces(
    wanted: Wanted, history: History, instruments: TextTools
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
    rounds: Sequence[Round], history: History, wanted: Wanted, instruments: TextTools
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
    one: Round, wanted: Wanted, instruments: TextTools, index: int
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


def todo_pieces(wanted: Wanted, instruments: TextTools) -> list[Piece]:
    """Give the recap, if there is anything to do."""
    if not wanted.todo:
        return []
    message = Message(role=Speaker.SYSTEM, content=f"[Todo] {recap(wanted.todo)}")
    tokens = instruments.count(message.content)
    return [Piece(Part.TODO_RECAP, "todo", message, tokens)]
