"""How a file may be seen: without secrets, by wider rules still, or as it is.

Knows redactors; decides nothing about who may see what.
"""

from enum import StrEnum

from creonowd.artifacts.redacting import Reader
from creonowd.redaction import Redactor
from creonowd.rpc.messages import without_surrogates


class View(StrEnum):
    """How a file is shown to whoever asks."""

    REDACTED = "redacted"
    SENSITIVE = "sensitive"
    RAW = "raw"


class Views:
    """The redactors of this user; `sensitive` makes the wider rules the rule."""

    def __init__(self, redactor: Redactor, *, sensitive: bool = False) -> None:
        self._wide = redactor.widened()
        self._usual = self._wide if sensitive else redactor

    def reader(self, view: View, source_ref: str) -> Reader:
        """Make what reads files for someone."""
        finders = {View.REDACTED: self._usual, View.SENSITIVE: self._wide}
        return Reader(finders.get(view), source_ref)

    def told(self, text: str) -> str:
        """Make a text fit to be told: without secrets and half characters."""
        return self._usual.redact(without_surrogates(text)).text
