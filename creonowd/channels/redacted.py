"""Texts on their way out: redacted, with evidence, and a log line that only counts."""

from collections.abc import Iterable, Sequence

import structlog
from anyio import to_thread

from creonowd.engine.services import Session
from creonowd.redaction import RedactionEvidence, Redactor

log = structlog.get_logger(__name__)

Told = tuple[list[str], list[RedactionEvidence]]


async def redacted(session: Session, project_id: str, texts: Sequence[tuple[str, str]]) -> Told:
    """Redact `(sourceRef, text)` pairs; the texts come back in order, with all evidence."""
    told, evidence = await to_thread.run_sync(_redacted, session.redactor, texts)
    log_redaction(project_id, evidence)
    return told, evidence


def log_redaction(project_id: str, evidence: Sequence[RedactionEvidence]) -> None:
    """Note that secrets were taken out, if any were; how many, never which."""
    if evidence:
        log.info(
            "context_redaction_applied",
            project_id=project_id,
            sources=len({piece.source_ref for piece in evidence}),
            matches=sum(piece.match_count for piece in evidence),
            patterns=sorted({piece.pattern_id for piece in evidence}),
        )


def _redacted(redactor: Redactor, texts: Iterable[tuple[str, str]]) -> Told:
    told: list[str] = []
    counts: dict[tuple[str, str], int] = {}
    for source_ref, text in texts:
        clean, evidence = redactor.redact(text, source_ref)
        told.append(clean)
        for piece in evidence:
            key = (piece.source_ref, piece.pattern_id)
            counts[key] = counts.get(key, 0) + piece.match_count
    return told, [
        RedactionEvidence(pattern_id=pattern, source_ref=source, match_count=count)
        for (source, pattern), count in sorted(counts.items())
    ]
