"""Redaction of the texts in a reply, with evidence and a log line."""

from collections.abc import Iterable, Sequence

import structlog
from msgspec import UnsetType

from creonowd.engine.services import Session
from creonowd.redaction import RedactionEvidence, Redactor
from creonowd.threads import call_in_thread

log = structlog.get_logger(__name__)

RedactedTexts = tuple[list[str], list[RedactionEvidence]]
OptionalEvidence = list[RedactionEvidence] | UnsetType


async def redact_texts(
    session: Session, project_id: str, texts: Sequence[tuple[str, str]]
) -> RedactedTexts:
    """Redact `(sourceRef, text)` pairs; return the texts in order, and the evidence."""
    clean_texts, evidence = await call_in_thread(_redact_all, session.redactor, texts)
    log_redaction(project_id, evidence)
    return clean_texts, evidence


def log_redaction(project_id: str, evidence: Sequence[RedactionEvidence]) -> None:
    """Log how many secrets were redacted, if any; never which."""
    if evidence:
        log.info(
            "context_redaction_applied",
            project_id=project_id,
            sources=len({piece.source_ref for piece in evidence}),
            matches=sum(piece.match_count for piece in evidence),
            patterns=sorted({piece.pattern_id for piece in evidence}),
        )


def _redact_all(redactor: Redactor, texts: Iterable[tuple[str, str]]) -> RedactedTexts:
    clean_texts: list[str] = []
    counts: dict[tuple[str, str], int] = {}
    for source_ref, text in texts:
        clean, evidence = redactor.redact(text, source_ref)
        clean_texts.append(clean)
        for piece in evidence:
            key = (piece.source_ref, piece.pattern_id)
            counts[key] = counts.get(key, 0) + piece.match_count
    return clean_texts, [
        RedactionEvidence(
            pattern_id=pattern, source_ref=redactor.redact_name(source), match_count=count
        )
        for (source, pattern), count in sorted(counts.items())
    ]
