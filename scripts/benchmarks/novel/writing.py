"""A writing session: how much of each prompt a provider's cache could reuse from the one before."""

import random
from typing import NamedTuple

from scripts.benchmarks.novel.desk import Desk, plan

APPENDED = 200
EDITED = 100


class Reuse(NamedTuple):
    """The share of prompt bytes that are a common prefix, and of calls whose prefix is stable."""

    bytes: float
    stable: float


async def append(desk: Desk, text: str, total: int, surrounding: int | None) -> Reuse:
    """Type a chapter at its end."""
    start = len(text) // 2
    rolls = random.Random(3)
    ends = [start]
    for _ in range(APPENDED):
        ends.append(ends[-1] + rolls.randint(4, 24))
    return await _reuse(
        desk, [(text[:end], end) for end in ends if end <= len(text)], total, surrounding
    )


async def edit(desk: Desk, text: str, total: int, surrounding: int | None) -> Reuse:
    """Insert words in the middle of a chapter."""
    place = len(text) // 2
    rolls = random.Random(4)
    states = [(text, place)]
    for _ in range(EDITED):
        typed = "她又想起那夜的雨。"[: rolls.randint(2, 9)]
        text = text[:place] + typed + text[place:]
        place += len(typed)
        states.append((text, place))
    return await _reuse(desk, states, total, surrounding)


async def _reuse(
    desk: Desk, states: list[tuple[str, int]], total: int, surrounding: int | None
) -> Reuse:
    before, hashed = b"", ""
    common = whole = stable = calls = 0
    for text, cursor in states:
        result = await desk.answered(plan(text, cursor, total, surrounding))
        prompt = result.prompt.encode()
        if before:
            common += common_prefix(before, prompt)
            whole += len(prompt)
            stable += result.stable_prefix_hash == hashed
            calls += 1
        before, hashed = prompt, result.stable_prefix_hash
    return Reuse(common / max(1, whole), stable / max(1, calls))


def common_prefix(one: bytes, other: bytes) -> int:
    """Tell how many bytes two prompts begin with alike, halving the stretch in question."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
