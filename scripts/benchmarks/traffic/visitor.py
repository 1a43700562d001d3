"""One client of mixed traffic, who remembers what was acknowledged and asks for it at the end.

Every visitor has a document, a conversation and constraints of their own in a project that is
shared with others.
"""

import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from scripts.benchmarks.traffic.ledger import Ledger
from scripts.benchmarks.traffic.line import Line, RefusedError

START = "雨下了一夜。The lamp in the gatehouse burned until four.\n" * 40
LOG_LINES = 400
MOST_CONSTRAINTS = 3
SKILLS = ("builtin:continue", "builtin:polish", "builtin:condense")


class Visitor:
    """What one client does and what the daemon owes it."""

    def __init__(self, number: int, project: str, line: Line, ledger: Ledger) -> None:
        self._line = line
        self._ledger = ledger
        self._rolls = random.Random(number)
        self._project = project
        self._name = f"v{number:03}"
        self._document = f"drafts/{self._name}.md"
        self._text = ""
        self._version = 0
        self._constraints: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._made = 0

    async def stay(self, until: float) -> None:
        """Come in, ask for things until it is time, then look whether everything is there."""
        await self._arrive()
        work: list[Callable[[], Awaitable[None]]] = [
            *[self._sync] * 6,
            *[self._assemble] * 5,
            *[self._constrain] * 2,
            *[self._grep] * 2,
            *[self._read] * 3,
            *[self._run] * 1,
            *[self._put] * 1,
        ]
        while time.perf_counter() < until:
            try:
                await self._rolls.choice(work)()
            except RefusedError as refused:
                self._ledger.expect(refused.retryable, f"an answer but {refused.code}: {refused}")
        await self._insist(self._look_again)

    async def _ask(self, channel: str, **payload: Any) -> Any:
        return await self._line.ask(channel, projectId=self._project, **payload)

    async def _arrive(self) -> None:
        await self._insist(lambda: self._whole(START))
        await self._insist(self._put)

    async def _insist(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Come back as often as the daemon says that it would help."""
        while True:
            try:
                return await work()
            except RefusedError as refused:
                if not refused.retryable:
                    raise

    async def _whole(self, text: str) -> None:
        got = await self._ask(
            "context:document:sync", documentId=self._document, version=self._version + 1, text=text
        )
        self._text, self._version = text, self._version + 1
        self._ledger.expect(got["length"] == len(text), "length of a synced document")

    async def _sync(self) -> None:
        typed = f"{self._name} wrote 第{self._version}句。\n"
        place = self._rolls.randint(0, len(self._text))
        edit = {"from": place, "to": place, "text": typed}
        got = await self._ask(
            "context:document:sync",
            documentId=self._document,
            baseVersion=self._version,
            version=self._version + 1,
            edits=[edit],
        )
        self._text = self._text[:place] + typed + self._text[place:]
        self._version += 1
        self._ledger.expect(got["length"] == len(self._text), "length of an edited document")

    async def _assemble(self) -> None:
        place = {"documentId": self._document, "cursorPosition": len(self._text)}
        got = await self._ask("context:assemble", skillId="bench", **place)
        self._ledger.expect(got["tokenCount"] <= got["budget"]["maxInputTokens"], "budget")
        self._ledger.expect(self._text[-20:].strip() in got["prompt"], "own text in the prompt")

    async def _constrain(self) -> None:
        if len(self._constraints) >= MOST_CONSTRAINTS:
            gone = next(iter(self._constraints))
            await self._ask("constraints:delete", constraintId=gone)
            del self._constraints[gone]
            return
        self._made += 1
        text = f"{self._name} 第{self._made}条：不得提前揭示真相。"
        got = await self._ask("constraints:create", constraint={"text": text})
        self._constraints[got["constraint"]["id"]] = text

    async def _put(self) -> None:
        mark = f"{self._name}-mark-{len(self._files)}"
        lines = [f"{n} INFO the rain went on 雨" for n in range(LOG_LINES)]
        content = "\n".join([*lines, mark, ""])
        got = await self._ask(
            "context:files:put", **self._conversation, kind="artifact", hint="log", content=content
        )
        self._files[got["ref"]["id"]] = mark

    async def _grep(self) -> None:
        file, mark = self._rolls.choice(list(self._files.items()))
        got = await self._ask("context.grep", **self._conversation, id=file, pattern=mark)
        self._ledger.expect(got["totalMatches"] == 1, "the marked line of a file")

    async def _read(self) -> None:
        file = self._rolls.choice(list(self._files))
        if self._rolls.random() < 0.5:
            await self._ask("context.read", **self._conversation, id=file, limit=4096)
            return
        await self._ask("context:creonow:rules:read", path=".creonow/rules/style.md")

    async def _run(self) -> None:
        place = {"documentId": self._document, "cursorPosition": len(self._text)}
        skill = self._rolls.choice(SKILLS)
        got = await self._ask("ai:skill:run", skillId=skill, stream=True, **place)
        self._ledger.expect(got["output"], "what a skill wrote")

    async def _look_again(self) -> None:
        """Ask for all that was acknowledged."""
        for file, mark in self._files.items():
            got = await self._ask("context.grep", **self._conversation, id=file, pattern=mark)
            self._ledger.expect(got["totalMatches"] == 1, "a file that was put")
        listed = await self._ask("constraints:list")
        there = {item["id"]: item["text"] for item in listed["constraints"]}
        for each, text in self._constraints.items():
            self._ledger.expect(there.get(each) == text, "a constraint that was created")
        mine = [each for each, text in there.items() if text.startswith(f"{self._name} ")]
        self._ledger.expect(sorted(mine) == sorted(self._constraints), "a deleted constraint")
        await self._sync()
        await self._ask("context:files:delete", **self._conversation)
        for each in list(self._constraints):
            await self._ask("constraints:delete", constraintId=each)

    @property
    def _conversation(self) -> dict[str, str]:
        return {"conversationId": f"{self._name}-talk"}
