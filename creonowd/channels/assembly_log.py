"""What the log tells of assemblies: counts, codes and hashes; never a text, a name or a path."""

from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

import structlog

from creonowd.context.assemble import Assembly
from creonowd.context.fragment import Action, FragmentKind
from creonowd.context.result import redaction_evidence
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


class News:
    """What has been told of late, so that a long list is not told with every keystroke."""

    def __init__(self, capacity: int = 256) -> None:
        self._capacity = capacity
        self._told: OrderedDict[str, None] = OrderedDict()

    def are(self, what: str) -> bool:
        """Tell whether something has not been told yet, and count it as told."""
        fresh = what not in self._told
        self._told[what] = None
        self._told.move_to_end(what)
        while len(self._told) > self._capacity:
            self._told.popitem(last=False)
        return fresh


def log_assembly(assembly: Assembly, elapsed_ms: float, news: News) -> None:
    """Log what an assembly came to; that rules were over their line only when it is news."""
    project_id = assembly.plan.project_id
    log.info(
        "context_assembled",
        project_id=project_id,
        tokens=assembly.tokens,
        budget=assembly.plan.figures.total,
        stable_prefix_hash=assembly.stable.hash,
        prompt_hash=assembly.prompt_hash,
        warnings=[str(text).partition(":")[0] for _, text in assembly.warnings],
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
    _log_rules(assembly, news)
    _log_redaction(assembly)


def _log_rules(assembly: Assembly, news: News) -> None:
    if not assembly.stable.rules_over:
        return
    if not news.are(f"{assembly.plan.project_id} {assembly.stable.hash}"):
        return
    rules = assembly.stable.rules
    log.warning(
        "context_rules_overbudget",
        code=WarningCode.CONTEXT_RULES_OVERBUDGET,
        project_id=assembly.plan.project_id,
        line=assembly.plan.figures.rules_line,
        before_tokens=rules.before_tokens,
        dropped=rules.actions.get(Action.DROPPED, 0),
    )
    gone = [v for v in rules.verdicts if not v.stays and v.kind is FragmentKind.CONSTRAINT]
    if gone:
        log.warning(
            "context_rules_constraint_trimmed",
            project_id=assembly.plan.project_id,
            constraints=[verdict.evidence.source_ref.rpartition("#")[2] for verdict in gone],
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
