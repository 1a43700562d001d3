"""What the log tells of assemblies: counts, codes and hashes; never a text, a name or a path."""

from collections.abc import Generator
from contextlib import contextmanager

import structlog

from creonowd.context.answer import redaction_evidence
from creonowd.context.assembly import Assembly
from creonowd.context.fragment import Action, Kind
from creonowd.errors import DaemonError, ErrorCode, WarningCode

_REFUSALS = {
    ErrorCode.CONTEXT_BACKPRESSURE: "context_backpressure",
    ErrorCode.CONTEXT_INPUT_TOO_LARGE: "context_input_too_large",
    ErrorCode.CONTEXT_SCOPE_VIOLATION: "context_scope_violation",
}

log = structlog.stdlib.get_logger(__name__)


@contextmanager
def refusals_logged(project_id: str) -> Generator[None]:
    """Log why an assembly was refused, and let the refusal go on its way."""
    try:
        yield
    except DaemonError as error:
        if error.code in _REFUSALS:
            log.warning(_REFUSALS[error.code], project_id=project_id, code=error.code)
        raise


def log_assembly(assembly: Assembly, elapsed_ms: float) -> None:
    """Log what an assembly came to."""
    project_id = assembly.plan.project_id
    log.info(
        "context_assembled",
        project_id=project_id,
        tokens=assembly.tokens,
        budget=assembly.plan.figures.total,
        stable_prefix_hash=assembly.stable.hash,
        prompt_hash=assembly.prompt_hash,
        warnings=[text.partition(":")[0] for _, text in assembly.warnings],
        elapsed_ms=round(elapsed_ms, 1),
        **{action.value: assembly.count(action) for action in Action},
    )
    for failure in assembly.failures:
        log.warning(
            "context_source_failed",
            project_id=project_id,
            source=failure.source,
            layer=failure.layer,
            kind=failure.kind,
        )
    _log_rules(assembly)
    _log_redaction(assembly)


def _log_rules(assembly: Assembly) -> None:
    if not assembly.stable.rules_over:
        return
    rules = assembly.stable.rules
    gone = [verdict for verdict in rules.verdicts if not verdict.stays]
    log.warning(
        "context_rules_overbudget",
        code=WarningCode.CONTEXT_RULES_OVERBUDGET,
        project_id=assembly.plan.project_id,
        line=assembly.plan.figures.rules_line,
        before_tokens=rules.before_tokens,
        dropped=len(gone),
    )
    constraints = [verdict for verdict in gone if verdict.kind is Kind.CONSTRAINT]
    if constraints:
        log.warning(
            "context_rules_constraint_trimmed",
            project_id=assembly.plan.project_id,
            constraints=[v.evidence.source_ref.rpartition("#")[2] for v in constraints],
        )


def _log_redaction(assembly: Assembly) -> None:
    evidence = redaction_evidence(assembly)
    if evidence:
        log.info(
            "context_redaction_applied",
            project_id=assembly.plan.project_id,
            sources=len({piece.source_ref for piece in evidence}),
            matches=sum(piece.match_count for piece in evidence),
            patterns=sorted({piece.pattern_id for piece in evidence}),
        )
