"""Secrets out, prose untouched: a pure function from text to redacted text and evidence.

Knows what a secret looks like; knows nothing of where a text comes from or goes to.
"""

from creonowd.redaction.log_values import event_redactor, redact_event, redact_value
from creonowd.redaction.redactor import (
    Redacted,
    RedactionEvidence,
    Redactor,
    redact,
)
from creonowd.redaction.rules import PLACEHOLDER, Stretch

__all__ = [
    "PLACEHOLDER",
    "Redacted",
    "RedactionEvidence",
    "Redactor",
    "Stretch",
    "event_redactor",
    "redact",
    "redact_event",
    "redact_value",
]
