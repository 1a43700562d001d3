"""Take secrets out of texts and leave prose as it is; return the text and evidence of it.

Pure functions: the package knows what a secret looks like, and nothing of where a text comes from
or goes to.
"""

from creonowd.redaction.log_values import event_redactor, redact_event, redact_value
from creonowd.redaction.redactor import (
    Redacted,
    RedactionEvidence,
    Redactor,
    redact,
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
