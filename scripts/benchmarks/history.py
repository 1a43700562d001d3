"""What a turn of a long conversation costs, as ratios within this run.

The conversation is made up: an agent that searches, reads and runs tests for 200 rounds.
"""

import statistics
import time
from collections.abc import Callable

from creonowd.context.instruments import Instruments, Memory
from creonowd.conversations import builder
from creonowd.conversations.builder import Built
from creonowd.conversations.cutting import Policy
from creonowd.conversations.histories import History
from creonowd.conversations.messages import Message, Speaker, ToolCall
from creonowd.conversations.reuse import LastTurns
from creonowd.conversations.rounds import grouped
from creonowd.conversations.turn import Wanted
from creonowd.redaction import Redactor
from creonowd.tokens.cache import CountCache
from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer

ROUNDS = 200
TIMES = 15
SYSTEM = "\n".join(
    f"Rule {n}: keep the author's voice, change one thing at a time." for n in range(120)
)
POLICY = Policy()


def main(_argv: list[str]) -> None:
    """Print one table."""
    encoding = packaged_encoding("o200k_base")
    tokenizer = BpeTokenizer(encoding, CountCache())
    instruments = Instruments(tokenizer, Redactor(), Memory())
    shares, costs, reference = _walk(instruments, lambda text: len(encoding.encode_ordinary(text)))
    early, late = _median(costs, 20), _median(costs, ROUNDS)
    print("| what | measured | goal |\n|---|---|---|")
    print(f"| turn 200 against turn 20 | {late / early:.2f} × | ≤ 1.5 × |")
    print(f"| build of a turn against counting its text once | {late / reference:.2f} × | – |")
    print(
        f"| share of prompt bytes reused between turns | {statistics.mean(shares):.1%} | ≥ 80 % |"
    )


def _walk(
    instruments: Instruments, count: Callable[[str], int]
) -> tuple[list[float], list[float], float]:
    """Go through the conversation turn by turn; the last figure is one plain count of a prompt."""
    history, turns = History(), LastTurns()
    shares: list[float] = []
    costs: list[float] = []
    built: Built | None = None
    for number in range(1, ROUNDS + 6):
        spent: list[float] = []
        for _ in range(TIMES):
            began = time.perf_counter()
            built = _build(number, history, instruments)
            spent.append(time.perf_counter() - began)
        assert built is not None
        costs.append(statistics.median(spent))
        shares.append(turns.compare(("bench",), built.messages, 1, 0).share)
        history = History(rounds=tuple(grouped(history.rounds, _round(number))))
    text = "\n".join(message.content for message in built.messages) if built else ""
    began = time.perf_counter()
    for _ in range(TIMES):
        count(text)
    return shares[1:], costs, (time.perf_counter() - began) / TIMES


def _median(costs: list[float], turn: int) -> float:
    return statistics.median(costs[turn - 5 : turn + 5])


def _build(number: int, history: History, instruments: Instruments) -> Built:
    wanted = Wanted(system_prompt=SYSTEM, input=f"Improve step {number}.", budget=16_000)
    prepared = builder.prepare(wanted, history, POLICY, instruments)
    return builder.compose(prepared, history, POLICY, instruments)


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
