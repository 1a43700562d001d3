"""How much of a long session is still there when the next turn is built, by the real channels."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from creonowd.history.summary import HEADING, LABELS
from testing.clients import Client
from testing.novels import Chat, make_chat
from testing.sessions import Fact, LongSession

SYSTEM_PROMPT = "You help an author and a programmer. Be brief, and change one thing at a time."
INPUT = "ok, go on"


class Recall(NamedTuple):
    """What became of the facts of a session.

    `reachable` are those in the context, and those that one `context.grep` finds. A contradiction
    is a corrected statement that stands in the summary, or in the context without its correction.
    """

    facts: int
    in_context: int
    reachable: int
    contradictions: int
    secrets: int

    @property
    def lost_facts(self) -> int:
        """How many facts are neither in the context nor found by one search."""
        return self.facts - self.reachable


class BuiltTurn(NamedTuple):
    """The messages of a turn, and how many rounds its summary covers."""

    messages: list[dict[str, Any]]
    covers: int = 0

    @property
    def text(self) -> str:
        """All that the model would read, calls included."""
        calls = [json.dumps(m.get("toolCalls", []), ensure_ascii=False) for m in self.messages]
        return "\n".join([*(m["content"] for m in self.messages), *calls])

    @property
    def summary(self) -> str:
        contents = (m["content"] for m in self.messages)
        return next((text for text in contents if text.startswith(HEADING)), "")


async def play(client: Client, folder: Path, session: LongSession) -> Chat:
    """Append all rounds of a session to a conversation of its own."""
    chat = await make_chat(client, folder / session.name, session.name)
    for messages in session.rounds:
        await chat.call("context:history:append", messages=messages)
    return chat


async def build(chat: Chat, budget: int) -> BuiltTurn:
    """Build the turn after the last round."""
    built = await chat.call(
        "context:build", input=INPUT, systemPrompt=SYSTEM_PROMPT, budgetTokens=budget
    )
    return BuiltTurn(built["messages"], built.get("summary", {}).get("coversRounds", 0))


async def recall(chat: Chat, session: LongSession, built: BuiltTurn) -> Recall:
    """Score a turn; what is not in it is searched for in the files that its summary names."""
    text, summary = built.text, built.summary
    missing = [fact for fact in session.facts if not _holds(fact.pattern, text)]
    ids = re.findall(r"context file (ctx_\w+)", summary)
    reached = [fact for fact in missing if await _grep(chat, ids, fact)]
    corrected = [fact for fact in session.facts if fact.wrong]
    return Recall(
        facts=len(session.facts),
        in_context=len(session.facts) - len(missing),
        reachable=len(session.facts) - len(missing) + len(reached),
        contradictions=sum(
            _holds(fact.wrong, text if fact in missing else summary) for fact in corrected
        ),
        secrets=sum(secret in text for secret in session.secrets),
    )


def total(scores: Iterable[Recall]) -> Recall:
    """Add up scores."""
    return Recall(*(sum(column) for column in zip(*scores, strict=True)))


async def _grep(chat: Chat, ids: Iterable[str], fact: Fact) -> bool:
    """Search for a fact's word once in each file that the summary names."""
    for id_ in ids:
        found = await chat.call("context.grep", id=id_, pattern=re.escape(fact.word))
        if any(_holds(fact.pattern, match["content"]) for match in found["matches"]):
            return True
    return False


def _holds(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def ideal_form(session: LongSession) -> str:
    """Write the form that a careful model would: one sentence for each fact, corrections only."""
    said: list[str] = [
        line
        for messages in session.rounds
        for message in messages
        if message["role"] != "tool"
        for line in message["content"].splitlines()[:3]
    ]
    wrong = [fact.wrong for fact in session.facts if fact.wrong]
    notes: dict[str, Any] = {}
    for fact in session.facts:
        lines = [line for line in reversed(said) if _holds(fact.pattern, line)]
        clean = [line for line in lines if not any(_holds(each, line) for each in wrong)]
        notes |= dict.fromkeys(clean[:1])
    fields = dict.fromkeys(LABELS, "none") | {
        "overall_goal": said[0],
        "knowledge": "; ".join(notes) or "none",
    }
    lines = [f"- {LABELS[name]}: {' '.join(text.split())}" for name, text in fields.items()]
    return "\n".join([HEADING, *lines])
