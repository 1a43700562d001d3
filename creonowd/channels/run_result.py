"""What `ai:skill:run` answers and tells on the way. Shapes only."""

import re

from msgspec import UNSET, UnsetType

from creonowd.context.result import AssembleResult, LayerSummaries, Provenance
from creonowd.judge.verdict import Verdict, placed
from creonowd.model import Model, Result
from creonowd.providers.provider import Stop, Usage
from creonowd.skills.running import Attempt

_REF = re.compile(r"\n### (?:以上摘自 )?(ref:[^\n]+)")
_AFTER = " 光标之后"


class StreamEvent(Model):
    """The next piece of a run's output; the pieces of one attempt join up to all of it.

    `attempt` is 2 once a run writes again because a constraint was broken: what was heard before
    is void then, unless the second attempt fails: the result's `attempts` says which one counts.
    `done` comes once, last, however the run ends.
    """

    run_id: str
    attempt: int
    delta: str
    done: bool = False


class RunUsage(Model):
    """Our exact count of what was sent beside what the provider counted, if it told.

    `difference` is the provider's count less ours.
    """

    estimated_input_tokens: int
    input_tokens: int | UnsetType = UNSET
    output_tokens: int | UnsetType = UNSET
    cache_read_tokens: int | UnsetType = UNSET
    cache_write_tokens: int | UnsetType = UNSET
    difference: int | UnsetType = UNSET


class Diagnostics(Provenance):
    """How the prompt of a run came about: all that `context:assemble` tells but the prompt.

    `prefixMarked` says whether the provider was asked to cache the stable prefix.
    """

    token_count: int
    fixed_tokens: int
    layers: LayerSummaries
    prefix_marked: bool


_SHARED = [n for n in Diagnostics.__struct_fields__ if n in AssembleResult.__struct_fields__]


class EarlierAttempt(Model):
    """What was written first, why it was written again, and what it cost."""

    output: str
    verdict: Verdict
    usage: RunUsage


class SkillRun(Result):
    """What a run came to.

    `refs` are the references of everything in the prompt, as they stand in it. `verdict` and
    `usage` are of `output`; `earlier` is there if a broken constraint made the run write again.
    """

    run_id: str
    skill_id: str
    provider: str
    model: str
    output: str
    stop_reason: Stop
    usage: RunUsage
    verdict: Verdict
    attempts: int
    refs: list[str]
    warnings: list[str]
    diagnostics: Diagnostics
    earlier: EarlierAttempt | UnsetType = UNSET


def diagnostics(assembled: AssembleResult, *, prefix_marked: bool) -> Diagnostics:
    """Take from an assembly all but its prompt."""
    fields = {name: getattr(assembled, name) for name in _SHARED}
    return Diagnostics(**fields, prefix_marked=prefix_marked)


def run_usage(estimated: int, told: Usage | None) -> RunUsage:
    """Set what the provider counted beside our own count."""
    if told is None:
        return RunUsage(estimated_input_tokens=estimated)
    return RunUsage(
        estimated_input_tokens=estimated,
        input_tokens=told.input_tokens,
        output_tokens=told.output_tokens,
        cache_read_tokens=told.cache_read_tokens,
        cache_write_tokens=told.cache_write_tokens,
        difference=told.input_tokens - estimated,
    )


def earlier(attempt: Attempt, *, utf16: bool) -> EarlierAttempt:
    """Tell what was written first."""
    output = attempt.answer.text
    return EarlierAttempt(
        output=output,
        verdict=placed(attempt.verdict, output, utf16=utf16),
        usage=run_usage(attempt.assembled.result.token_count, attempt.answer.usage),
    )


def refs_in(assembled: AssembleResult) -> list[str]:
    """List the references in a prompt, in their order, as they stand in it.

    Of a document that is shown in part, the reference that says which part.
    """
    layers = assembled.layers
    known = {*layers.rules.source, *layers.settings.source}
    known.update(layers.retrieved.source, layers.immediate.source)
    found = (ref.removesuffix(_AFTER) for ref in _REF.findall(assembled.prompt))
    refs = dict.fromkeys(ref for ref in found if ref[4:].partition("#")[0] in known)
    in_part = {ref.partition("#L")[0] for ref in refs if "#L" in ref}
    return [ref for ref in refs if ref not in in_part]
