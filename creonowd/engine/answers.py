"""The answers to `context:assemble`, made once for as long as nothing they are made of changes.

An assembly is a pure function of its plan, of what its sources return and of the tools. So the same
plan with sources that have not changed has the answer that it had before. Sources that other
processes offer cannot say whether they have changed: an assembly that asks them is always made.
"""

from collections.abc import Callable, Hashable
from typing import NamedTuple

from creonowd.context.result import AssembleResult, EncodedAnswer, encode_answer
from creonowd.context.source import wanted_sources
from creonowd.context.stable_prefix import PrefixDigest
from creonowd.engine.assembly import (
    AssembleContext,
    LoggedOutcome,
    Preparation,
    WhatIf,
    assemble_prepared,
    is_said_once,
    log_assembly,
    log_outcome,
    outcome_of,
    prepare,
    said_key,
)
from creonowd.engine.services import Session


class KeptAnswer(NamedTuple):
    """An answer, the digest of its stable prefix, what is logged of it, and its weight.

    `unsaid` are the keys of warnings that it lacks because its project had them before.
    """

    answer: EncodedAnswer
    digest: PrefixDigest
    outcome: LoggedOutcome
    unsaid: tuple[str, ...]
    weight: int


async def answer_client(session: Session, request: AssembleContext) -> AssembleResult:
    """Return the prompt for one AI call; what was made of the same before is not made again."""
    started, engine = session.clock.monotonic(), session.engine
    async with prepare(session, request, WhatIf()) as prepared:
        key = _key(prepared)
        kept = None if key is None else engine.answers.peek(key)
        if kept is None or not all(map(engine.seen_once.has, kept.unsaid)):
            kept = await _make(session, prepared, key, started)
        else:
            log_outcome(kept.outcome, session.clock.monotonic() - started)
    return kept.answer.result(engine.prefixes.follow(prepared.key, kept.digest))


async def _make(
    session: Session, prepared: Preparation, key: Hashable | None, started: float
) -> KeptAnswer:
    plan, engine = prepared.plan, session.engine
    result = await assemble_prepared(session, prepared)
    assembly = result.assembly
    log_assembly(assembly, session.clock.monotonic() - started, engine.seen_once)
    answer = encode_answer(assembly, result.target)
    text = 0 if plan.document is None else len(plan.document.text)
    made = KeptAnswer(
        answer=answer,
        digest=assembly.system_prompt.digest,
        outcome=outcome_of(assembly),
        unsaid=tuple(said_key(plan, warning) for warning in result.repeated),
        weight=answer.weight + text,
    )
    # A source that failed may work the next time; a warning that a project gets once is not repeated.
    is_lasting = not assembly.failures and not any(map(is_said_once, assembly.warnings))
    if is_lasting and key is not None and key == _key(prepared):
        engine.answers.put(key, made)
    return made


def _key(prepared: Preparation) -> Hashable | None:
    """Return all that an answer depends on; None if that cannot be known."""
    plan, tools, target = prepared.plan, prepared.tools, prepared.target
    revisions: list[Hashable] = []
    for source in wanted_sources(plan, prepared.sources):
        revision: Callable[[], Hashable | None] | None = getattr(source, "revision", None)
        current = None if revision is None else revision()
        if current is None:
            return None
        revisions.append(current)
    return (plan, target, tools.key, tools.tokenizer.exact, tuple(revisions))
