"""What a story makes the AI say, as it stands in a story: plain dictionaries with the wire's names.

The types of `e2e:ai:script` for a type checker; protocol/electron/harness.d.ts has the same.
"""

from typing import Literal, Required, TypedDict


class StoryUsage(TypedDict, total=False):
    """Tokens that an answer is said to have taken."""

    inputTokens: Required[int]
    outputTokens: Required[int]
    cacheReadTokens: int
    cacheWriteTokens: int


class StoryStep(TypedDict, total=False):
    """One answer of the AI. Without `text` it answers with the prompt itself.

    It comes in pieces of `piece` characters with `delayMs` before each. `stall` and `fail` happen
    after `after` pieces; a stall lasts until the run is cancelled. `fail` is an error code, with
    `retryAfterMs` in its details. `unknown` are sampling parameters that the model does not know.
    """

    text: str | None
    piece: int
    delayMs: int
    after: int
    stall: bool
    fail: str
    retryAfterMs: int
    stop: Literal["end", "length", "refused"]
    usage: StoryUsage
    unknown: list[str]


class StoryViolation(TypedDict, total=False):
    """A constraint that the judge finds broken: its number in the prompt, from 1 on."""

    constraint: Required[int]
    quote: str
    confidence: float
    reason: str
    reasonEnglish: str


class StoryVerdict(TypedDict, total=False):
    """What the judge says of one output; a constraint that it does not name was kept."""

    violations: Required[list[StoryViolation]]
    unsure: list[int]


class StoryScript(TypedDict, total=False):
    """What the AI does from now on, call by call; it replaces what was not yet played.

    `steps` answer runs, `verdicts` answer as the judge: a string is sent as it stands, also one that
    makes no sense. Without verdicts there is no model that judges.
    """

    steps: list[StoryStep]
    verdicts: list[StoryVerdict | str]
    verdictUsage: StoryUsage
