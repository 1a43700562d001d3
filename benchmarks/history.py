"""What a turn of a long conversation costs as it grows, and what of it is still there.

The conversation whose cost is measured is made up: an agent that reads and edits for 200 rounds.
Every turn is built once, with all that it has to count and to summarise. The cost of a turn is
processor time, the mean over the turns from one summary to the next around it, since the prompt
grows in between.

What is still there is measured on the sessions of `testing.sessions`, through the channels: a fact
is in the context, or one `context.grep` for a word finds it, or it is lost.
"""

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import anyio
from msgspec.structs import replace

from creonowd.context.text_tools import Memory, TextTools
from creonowd.history.budget_fit import SummaryPolicy, summary_policy
from creonowd.history.build_result import LastTurns
from creonowd.history.histories import History
from creonowd.history.knowledge import whole_sentences
from creonowd.history.rounds import Message, Speaker, ToolCall, group_rounds
from creonowd.history.summary import HistorySummary, render_summary
from creonowd.history.turn import TurnContext, TurnRequest, fit_turn, plan_turn
from creonowd.redaction import Redactor
from creonowd.settings import Settings
from creonowd.tokens.tables import packaged_encoding
from creonowd.tokens.tokenizer import BpeTokenizer
from testing.clients import Client, daemon
from testing.novels import Chat
from testing.session_recall import BuiltTurn, Recall, build, ideal_form, play, recall, total
from testing.sessions import SETS, LongSession, long_sessions

ROUNDS = 200
FAR = 2000
TIMES = 7
FAR_TIMES = 3
SYSTEM = "\n".join(
    f"Rule {n}: keep the author's voice, change one thing at a time." for n in range(120)
)
POLICY = summary_policy(Settings())
BUDGETS = (16_000, 8_000, 4_000)
PASSES = 40


class Turn(NamedTuple):
    """What a turn took, how many rounds its summary covers, and the share of its prompt reused."""

    seconds: float
    covers: int
    share: float
    counting: float


def main(argv: list[str]) -> None:
    """Print the cost and the recall, or the one that is named."""
    if argv != ["recall"]:
        print_cost()
    if argv != ["cost"]:
        for name in SETS:
            print()
            anyio.run(print_recall, name)


def print_cost() -> None:
    """Print what turns cost."""
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
    each_turn = statistics.mean(turn.share for turn in _always_summarised()[1:])
    print(f"| the same if every turn summarised all but five rounds | {each_turn:.1%} | – |")


def _always_summarised() -> list[Turn]:
    """Build turns of which each summarises all but the rounds that stay."""
    return _build_all(ROUNDS, len, replace(POLICY, summary_at=0.001))


def _turns(rounds: int, times: int, count: Callable[[str], object]) -> list[Turn]:
    repetitions = [_build_all(rounds, count) for _ in range(times)]
    return [_median(same) for same in zip(*repetitions, strict=True)]


def _build_all(
    rounds: int, count: Callable[[str], object], policy: SummaryPolicy = POLICY
) -> list[Turn]:
    """Build the conversation turn by turn, with nothing cached at the start."""
    tokenizer = BpeTokenizer(packaged_encoding("o200k_base"))
    tools = TextTools(tokenizer, Redactor(), Memory())
    history, sent = History(), LastTurns()
    turns: list[Turn] = []
    for number in range(1, rounds + 1):
        began = time.thread_time()
        context = _build(number, history, tools, policy)
        share = sent.compare(("bench",), context.messages, 1, 0).share
        spent = time.thread_time() - began
        turns.append(Turn(spent, context.draft.covers, share, _count_seconds(context, count)))
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


def _count_seconds(context: TurnContext, count: Callable[[str], object]) -> float:
    text = "\n".join(message.content for message in context.messages)
    began = time.thread_time()
    count(text)
    return time.thread_time() - began


def _build(number: int, history: History, tools: TextTools, policy: SummaryPolicy) -> TurnContext:
    request = TurnRequest(system_prompt=SYSTEM, input=f"Improve step {number}.", budget=16_000)
    plan = plan_turn(request, history, policy, tools)
    return fit_turn(plan, history, policy, tools)


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


async def print_recall(name: str) -> None:
    """Print what of one set of sessions is still there, for each way of keeping it."""
    sessions = long_sessions(name)
    rounds = sorted(len(session.rounds) for session in sessions)
    print(
        f"{name.replace('_', '-')}: {len(sessions)} sessions of {rounds[0]} to {rounds[-1]} rounds, "
        f"{sum(len(session.facts) for session in sessions)} facts\n"
    )
    print("| budget | way | in the context | reachable | lost | contradictions | secrets |")
    print("|---|---|---|---|---|---|---|")
    scores = {**await _by_daemon(sessions), **await _by_model(sessions)}
    for budget in BUDGETS:
        for way in ("extractive", "scripted model", "first sentences", "truncation"):
            score = total(scores[budget, way])
            print(
                f"| {budget} | {way} | {score.in_context / score.facts:.0%} "
                f"| {score.reachable / score.facts:.0%} | {score.lost_facts} "
                f"| {score.contradictions} | {score.secrets} |"
            )


Scores = dict[tuple[int, str], list[Recall]]


async def _by_daemon(sessions: Sequence[LongSession]) -> Scores:
    """Score what the daemon builds without a model, and two simple ways on the same rounds."""
    scores: Scores = {}
    with tempfile.TemporaryDirectory() as folder:
        async with daemon(Path(folder, "data"), Settings(warm_up=False)) as client:
            for session in sessions:
                chat = await play(client, Path(folder), session)
                for budget in BUDGETS:
                    built = await build(chat, budget)
                    former = _with_first_sentences(built, session)
                    cut = BuiltTurn(await _newest(client, session, budget))
                    for way, turn in (
                        ("extractive", built),
                        ("first sentences", former),
                        ("truncation", cut),
                    ):
                        score = await recall(chat, session, turn)
                        scores.setdefault((budget, way), []).append(score)
    return scores


async def _by_model(sessions: Sequence[LongSession]) -> Scores:
    """Score what the daemon builds with a model that writes one good form, pass after pass."""
    settings = Settings(e2e=True, warm_up=False, history_summariser="model")
    scores: Scores = {}
    for budget in BUDGETS:
        with tempfile.TemporaryDirectory() as folder:
            async with daemon(Path(folder, "data"), settings) as client:
                for session in sessions:
                    chat = await play(client, Path(folder), session)
                    steps = [{"text": ideal_form(session)}] * PASSES
                    await client.call("e2e:ai:script", {"steps": steps})
                    score = await recall(chat, session, await _build_twice(chat, budget))
                    scores.setdefault((budget, "scripted model"), []).append(score)
    return scores


async def _build_twice(chat: Chat, budget: int) -> BuiltTurn:
    """Build a turn with what the model wrote for the turn before it."""
    await build(chat, budget)
    return await build(chat, budget)


def _with_first_sentences(built: BuiltTurn, session: LongSession) -> BuiltTurn:
    """Put the former summary in the place of ours: the first sentences of what was said."""
    if not built.summary:
        return built
    covered = session.rounds[: built.covers]
    requests = [_first_sentence(messages[0]["content"]) for messages in covered]
    answers = [
        _first_sentence(m["content"])
        for messages in covered
        for m in messages[1:]
        if m["role"] == "assistant" and m["content"]
    ]
    paths: list[str] = [
        call["arguments"].get("file_path", "")
        for messages in covered
        for m in messages
        for call in m.get("toolCalls", [])
    ]
    summary = HistorySummary(
        overall_goal=f"{requests[0]} Now: {requests[-1]}",
        plan_and_progress=f"{len(covered)} rounds done; the last with: {answers[-1]}",
        files=", ".join(dict.fromkeys(path for path in reversed(paths) if path)),
        knowledge="; ".join(answers[-5:]),
        left_off=requests[-1],
    )
    content = render_summary(summary)
    messages = [
        {**m, "content": content} if m["content"] == built.summary else m for m in built.messages
    ]
    return BuiltTurn(messages, built.covers)


def _first_sentence(text: str) -> str:
    return next(whole_sentences(" ".join(text[:600].split())), "").strip()


async def _newest(client: Client, session: LongSession, budget: int) -> list[dict[str, Any]]:
    """Return the newest messages that fit, as a program would that only cuts."""
    kept: list[dict[str, Any]] = []
    for message in _backwards(session):
        counted = await client.call("tokens:count", {"text": message["content"]})
        budget -= counted["tokens"]
        if budget < 0:
            break
        kept.insert(0, message)
    return kept


def _backwards(session: LongSession) -> Iterator[dict[str, Any]]:
    for messages in reversed(session.rounds):
        for message in reversed(messages):
            content = message["content"]
            yield {**message, "content": content if isinstance(content, str) else str(content)}
