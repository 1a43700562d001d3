"""What a turn of a long conversation costs as the conversation grows.

The conversation is made up: an agent that reads and edits for 200 rounds. Every turn is built once,
with all that it has to count and to summarise. The cost of a turn is processor time, the mean over
the turns from one summary to the next around it, since the prompt grows in between.
"""

import statistics
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from creonowd.context.text_tools import Memory, TextTools
from creonowd.history.budget_fit import summary_policy
from creonowd.history.build_result import LastTurns
from creonowd.history.histories import History
from creonowd.history.rounds import Message, Speaker, ToolCall, group_rounds
from creonowd.history.turn import TurnContext, TurnRequest, fit_turn, plan_turn
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer

ROUNDS = 200
FAR = 2000
TIMES = 7
FAR_TIMES = 3
SYSTEM = "\n".join(
    f"Rule {n}: keep the author's voice, change one thing at a time." for n in range(120)
)
POLICY = summary_policy(Settings())


class Turn(NamedTuple):
    """What a turn took, how many rounds its summary covers, and the share of its prompt reused."""

    seconds: float
    covers: int
    share: float
    counting: float


def main(_argv: list[str]) -> None:
    """Print one table."""
    encoding = packaged_encoding("o200k_base")
    turns = _turns(ROUNDS + 25, TIMES, encoding.encode_ordinary)
    far = _turns(FAR + 25, FAR_TIMES, encoding.encode_ordinary)
    early, late = _cost(turns, 20), _cost(turns, ROUNDS)
    counting = statistics.mean(turn.counting for turn in _around(turns, ROUNDS))
    share = statistics.mean(turn.share for turn in turns[1:ROUNDS])
    print("| what | measured | goal |\n|---|---|---|")
    print(f"| turn 200 against turn 20 | {late / early:.2f} × | ≤ 1.5 × |")
    print(f"| turn 2000 against turn 20 | {_cost(far, FAR) / _cost(far, 20):.2f} × | – |")
    print(f"| build of a turn against counting its text once | {late / counting:.2f} × | – |")
    print(f"| share of prompt bytes reused between turns | {share:.1%} | ≥ 80 % |")


def _turns(rounds: int, times: int, count: Callable[[str], object]) -> list[Turn]:
    repetitions = [_build_all(rounds, count) for _ in range(times)]
    return [_median(same) for same in zip(*repetitions, strict=True)]


def _build_all(rounds: int, count: Callable[[str], object]) -> list[Turn]:
    """Build the conversation turn by turn, with nothing cached at the start."""
    tokenizer = BpeTokenizer(packaged_encoding("o200k_base"))
    tools = TextTools(tokenizer, Redactor(), Memory())
    history, sent = History(), LastTurns()
    turns: list[Turn] = []
    for number in range(1, rounds + 1):
        began = time.thread_time()
        context = _build(number, history, tools)
        share = sent.compare(("bench",), context.messages, 1, 0).share
        spent = time.thread_time() - began
        turns.append(Turn(spent, context.draft.covers, share, _counting(context, count)))
        history = History(rounds=tuple(group_rounds(history.rounds, _round(number))))
    return turns


def _median(same: Sequence[Turn]) -> Turn:
    """Return the median of one turn over all repetitions, which differ in time only."""
    seconds = statistics.median(turn.seconds for turn in same)
    counting = statistics.median(turn.counting for turn in same)
    return same[0]._replace(seconds=seconds, counting=counting)


def _cost(turns: Sequence[Turn], number: int) -> float:
    return statistics.mean(turn.seconds for turn in _around(turns, number))


def _around(turns: Sequence[Turn], number: int) -> list[Turn]:
    covers = turns[number - 1].covers
    return [turn for turn in turns if turn.covers == covers]


def _counting(context: TurnContext, count: Callable[[str], object]) -> float:
    text = "\n".join(message.content for message in context.messages)
    began = time.thread_time()
    count(text)
    return time.thread_time() - began


def _build(number: int, history: History, tools: TextTools) -> TurnContext:
    request = TurnRequest(system_prompt=SYSTEM, input=f"Improve step {number}.", budget=16_000)
    plan = plan_turn(request, history, POLICY, tools)
    return fit_turn(plan, history, POLICY, tools)


def _round(number: int) -> list[Message]:
    path = f"src/chapter_{number % 12}.py"
    text = "\n".join(
        f"{n}: line {n} of draft {number}: 林远推开门，夜色很深。" for n in range(1, 16)
    )
    called = ToolCall(id=f"r{number}", name="Read", arguments={"file_path": path})
    read = f"[Read] {path}: lines 1-15\n{text}\nFull output: ctx_{number:020d}"
    return [
        Message(role=Speaker.USER, content=f"Improve step {number}."),
        Message(role=Speaker.ASSISTANT, tool_calls=(called,)),
        Message(role=Speaker.TOOL, content=read, tool_call_id=called.id, name="Read"),
        Message(role=Speaker.ASSISTANT, content=f"Step {number} is better now. It reads well."),
    ]
