"""`context:assemble` and `context:inspect` — the prompt for one AI call, and why it is so."""

import structlog

from creonowd.context.inspection import InspectMeta, InspectResult, inspect, without_kept
from creonowd.context.result import AssembleResult
from creonowd.context.stable_prefix import PrefixComparison
from creonowd.engine.assembly import (
    ASSEMBLY_ERRORS,
    AssembleContext,
    WhatIf,
    answer_client,
    assemble_for_client,
    compare_prefix,
)
from creonowd.engine.explain import explain_context, list_subjects
from creonowd.engine.inspection_parts import ShownPart, inspection_parts
from creonowd.engine.services import Session, may_inspect
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import Channel, Role

log = structlog.stdlib.get_logger(__name__)


class InspectContext(AssembleContext):
    """The same as for `context:assemble`; `debugMode` must be true.

    With `whatIf` the result shows what would be, and nothing is changed: `stablePrefixUnchanged` is
    neither compared nor updated.
    """

    debug_mode: bool = False
    """Must be true, else CONTEXT_INSPECT_FORBIDDEN."""
    what_if: WhatIf | None = None
    """Show what would be, and change nothing: `stablePrefixUnchanged` is neither compared nor
    updated."""
    show: tuple[ShownPart, ...] = ()
    """The parts of the result to make; without it there is no prompt."""
    brief: bool = False
    """Leave out of `trimEvidence` what is kept whole: the fragments say the same of it."""


async def assemble_context(session: Session, params: AssembleContext) -> AssembleResult:
    """Make the prompt for one AI call, within its budget, with evidence for everything."""
    return await answer_client(session, params)


async def inspect_context(session: Session, params: InspectContext) -> InspectResult:
    """Return what an assembly is made of; only for owners in debug mode."""
    if not (params.debug_mode and may_inspect(session)):
        log.warning("context_inspect_forbidden", role=session.peer.role, peer=session.peer.id)
        raise DaemonError(ErrorCode.CONTEXT_INSPECT_FORBIDDEN)
    result = await assemble_for_client(session, params, params.what_if)
    comparison = PrefixComparison() if params.what_if else compare_prefix(session, result)
    meta = InspectMeta(
        debug_mode=params.debug_mode,
        requested_by=session.peer.id,
        requested_at=session.clock.now_ms(),
        what_if=params.what_if is not None,
    )
    parts = await inspection_parts(session, result, params.show)
    inspected = inspect(result.assembly, comparison, result.target, meta, parts)
    return without_kept(inspected) if params.brief else inspected


_ERRORS = (
    *ASSEMBLY_ERRORS,
    ErrorCode.CONTEXT_TOKENIZER_MISMATCH,
    ErrorCode.CONTEXT_BUDGET_INVALID_RATIO,
    ErrorCode.CONTEXT_BUDGET_INVALID_MINIMUM,
)
CHANNELS = (
    Channel(
        "context:assemble",
        assemble_context,
        errors=(*ASSEMBLY_ERRORS, ErrorCode.CONTEXT_TOKENIZER_MISMATCH),
    ),
    Channel(
        "context:inspect",
        inspect_context,
        role=Role.OWNER,
        refusal=ErrorCode.CONTEXT_INSPECT_FORBIDDEN,
        errors=_ERRORS,
    ),
    Channel(
        "context:explain",
        explain_context,
        role=Role.OWNER,
        refusal=ErrorCode.CONTEXT_INSPECT_FORBIDDEN,
        errors=_ERRORS,
    ),
    Channel("context:subjects", list_subjects),
)
