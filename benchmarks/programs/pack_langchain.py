"""LangChain's `trim_messages`: the best chunks and the manuscript come last, since it keeps the end."""

from importlib import import_module
from typing import Any

from benchmarks.programs.contest import PackedPrompt, Work, main

encoding: Any = import_module("tiktoken").get_encoding("o200k_base")
messages: Any = import_module("langchain_core.messages")


class LangChain:
    """Counts every message with tiktoken, as its documentation shows."""

    def __init__(self, work: Work, budget: int) -> None:
        self.tokenised = 0
        self._system = messages.SystemMessage(work.system)
        ranked = sorted(work.chunks, key=lambda chunk: chunk.score)
        self._chunks = [messages.HumanMessage(chunk.text) for chunk in ranked]
        self._budget = budget

    def turn(self, manuscript: str) -> PackedPrompt:
        """Keep the manuscript and the best chunks."""
        kept = self._trim([*self._chunks, messages.HumanMessage(manuscript)])
        return PackedPrompt("".join(message.content for message in kept), self._count(kept))

    def continue_story(self, story: list[str]) -> str:
        """Keep the last passages that fit."""
        kept = self._trim([messages.HumanMessage(passage) for passage in story])
        return "".join(message.content for message in kept)

    def _trim(self, given: list[Any]) -> list[Any]:
        return messages.trim_messages(
            [self._system, *given],
            max_tokens=self._budget,
            token_counter=self._count,
            strategy="last",
            include_system=True,
        )

    def _count(self, given: list[Any]) -> int:
        self.tokenised += sum(len(message.content) for message in given)
        return sum(len(encoding.encode_ordinary(message.content)) for message in given)


if __name__ == "__main__":
    main(LangChain)
