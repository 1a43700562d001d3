"""LlamaIndex's `PromptHelper.repack`: the best chunks come first, and the first pack is the prompt.

The story goes through its `ChatMemoryBuffer`, which keeps the end.
"""

from importlib import import_module
from typing import Any

from benchmarks.programs.contest import PackedPrompt, Work, main

encoding: Any = import_module("tiktoken").get_encoding("o200k_base")
helper: Any = import_module("llama_index.core.indices.prompt_helper").PromptHelper
memory: Any = import_module("llama_index.core.memory").ChatMemoryBuffer
message: Any = import_module("llama_index.core.llms").ChatMessage
template: Any = import_module("llama_index.core").PromptTemplate


class LlamaIndex:
    """Packs the chunks around what the template holds already, as its synthesizers do."""

    def __init__(self, work: Work, budget: int) -> None:
        self.tokenised = 0
        self._budget = budget
        self._system = work.system
        self._prompt = template(work.system + "{context_str}\n{query_str}")
        ranked = sorted(work.chunks, key=lambda chunk: -chunk.score)
        self._chunks = [chunk.text for chunk in ranked]
        self._helper = helper(
            context_window=budget, num_output=0, chunk_overlap_ratio=0.0, tokenizer=self._encode
        )

    def turn(self, manuscript: str) -> PackedPrompt:
        """Pack what fits beside the manuscript."""
        asked = self._prompt.partial_format(query_str=manuscript)
        packs = self._helper.repack(asked, self._chunks)
        return PackedPrompt(asked.format(context_str=packs[0]))

    def continue_story(self, story: list[str]) -> str:
        """Keep the last passages that fit."""
        buffer = memory.from_defaults(
            chat_history=[message(role="user", content=passage) for passage in story],
            token_limit=self._budget,
            tokenizer_fn=self._encode,
        )
        used = len(encoding.encode_ordinary(self._system))
        kept = buffer.get(initial_token_count=used)
        return self._system + "".join(one.content for one in kept)

    def _encode(self, text: str) -> list[int]:
        self.tokenised += len(text)
        return list(encoding.encode_ordinary(text))


if __name__ == "__main__":
    main(LlamaIndex)
