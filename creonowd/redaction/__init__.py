"""Take secrets out of texts and leave prose as it is; return the text and evidence of it.

Pure functions: the package knows what a secret looks like, and nothing of where a text comes from
or goes to.
"""

from creonowd.redaction.redactor import (
    Redacted,
    RedactionEvidence,
    Redactor,
    event_redactor,
    redact,
    redact_event,
    redact_value,
)
from creonowd.redaction.rules import PLACEHOLDER, SecretSpan

__all__ = [
    "PLACEHOLDER",
    "Redacted",
    "RedactionEvidence",
    "Redactor",
    "SecretSpan",
    "event_redactor",
    "redact",
    "redact_event",
    "redact_value",
]
