"""One AI run: assemble, ask, judge; and once more if a constraint was broken and that is wanted.

Knows the order of things and nothing of sources, providers and the wire: those are handed in.
"""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import NamedTuple

from creonowd.context.result import AssembleResult
from creonowd.errors import DaemonError, ErrorCode
from creonowd.judge.judge import named
from creonowd.judge.verdict import PromptConstraints, Status, Verdict
from creonowd.model import Model
from creonowd.providers.configured import SentPrefixes
from creonowd.providers.provider import Answer, Call, Provider

Hear = Callable[[int, str], None]


class Policy(StrEnum):
    """What follows a broken constraint: tell where, or write once more with it named."""

    ANNOTATE = "annotate"
    REGENERATE = "regenerate"


class Errand(Model):
    """What a run is to do; `whose` tells apart whose prefixes are worth caching."""

    whose: str
    instruction: str = ""
    policy: Policy = Policy.ANNOTATE


class Assembled(Model):
    """A prompt, whom it is for, and what its output will be judged by."""

    result: AssembleResult
    model: str
    max_output_tokens: int
    skill_name: str
    constraints: PromptConstraints = PromptConstraints()


class Hands(NamedTuple):
    """What a run works with."""

    assemble: Callable[[str], Awaitable[Assembled]]
    provider: Provider
    judge: Callable[[Assembled, str], Awaitable[Verdict]]
    reuse: SentPrefixes
    hear: Hear


class Attempt(Model):
    """What was sent, what came back and what the judge says."""

    assembled: Assembled
    answer: Answer
    verdict: Verdict
    prefix_marked: bool


class Outcome(NamedTuple):
    """The attempts that came to an end, and what the second failed with if it did not."""

    attempts: tuple[Attempt, ...]
    failed: ErrorCode | None = None


async def carry_out(errand: Errand, hands: Hands) -> Outcome:
    """Make one attempt, or two; the last one counts. What is written is not lost to the second."""
    first = await _attempt(1, errand.instruction, errand, hands)
    if errand.policy is Policy.ANNOTATE or first.verdict.status is not Status.VIOLATED:
        return Outcome((first,))
    told = "\n\n".join(part for part in (errand.instruction, named(first.verdict)) if part)
    try:
        return Outcome((first, await _attempt(2, told, errand, hands)))
    except DaemonError as error:
        return Outcome((first,), error.code)


async def _attempt(number: int, instruction: str, errand: Errand, hands: Hands) -> Attempt:
    assembled = await hands.assemble(instruction)
    call = _call(assembled, errand, hands)
    answer = await hands.provider.answer(call, lambda text: hands.hear(number, text))
    verdict = await hands.judge(assembled, answer.text)
    return Attempt(
        assembled=assembled, answer=answer, verdict=verdict, prefix_marked=call.mark_prefix
    )


def _call(assembled: Assembled, errand: Errand, hands: Hands) -> Call:
    """Send the very bytes that were hashed; ask to cache the prefix where that can pay."""
    result = assembled.result
    prefix = result.stable_prefix_hash
    long_enough = any(
        point.hash == prefix and point.reaches_minimum for point in result.cache_break_points
    )
    likely = result.stable_prefix_unchanged or hands.reuse.is_likely(errand.whose, prefix)
    hands.reuse.note(errand.whose, prefix)
    return Call(
        model=assembled.model,
        system=result.system_prompt,
        user=result.user_content,
        max_output_tokens=assembled.max_output_tokens,
        prefix_hash=prefix,
        mark_prefix=long_enough and likely,
    )
