"""A tool call as its compressor sees it: arguments, result, limits. Knows names that tools use."""

import re
from typing import Any, NamedTuple

from creonowd.conversations.excerpts import Limits, described, one_line
from creonowd.conversations.observation import Form, Observation, as_fields, as_items

_PATHS = ("file_path", "filePath", "path", "file", "filename", "notebook_path", "relative_path")
TEXTS = ("content", "text", "stdout", "output", "result", "body", "data", "message")
_FAILED = re.compile(
    r"\s*(?:<tool_use_error>|(?:error|fatal|failed|错误)\s*[:：]|Traceback \(most recent"
    r"|[A-Za-z_.]{0,60}(?:Error|Exception):)",
    re.IGNORECASE,
)


class Seen(NamedTuple):
    """One call and what came of it, both without secrets."""

    arguments: dict[str, Any]
    observation: Observation
    fields: dict[str, Any]
    limits: Limits

    def find(self, *names: str) -> Any:
        """Look for the first of these names in the result, then in the arguments."""
        for place in (self.fields, self.arguments):
            for name in names:
                if place.get(name) not in (None, ""):
                    return place[name]
        return None

    def number(self, *names: str) -> int | None:
        """Look for a whole number under these names."""
        found = self.find(*names)
        if isinstance(found, str) and found.strip().lstrip("-").isdigit():
            return int(found)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def items(self, *names: str) -> list[Any] | None:
        """Look for a list: the result itself, or one of these fields."""
        whole: Any = self.observation.value
        if isinstance(whole, list):
            return as_items(whole)
        lists = (self.fields.get(name) for name in names)
        return next((as_items(found) for found in lists if isinstance(found, list)), None)

    @property
    def path(self) -> str:
        """The file or folder that the call is about; the arguments know best."""
        for place in (self.arguments, self.fields):
            for name in _PATHS:
                if isinstance(place.get(name), str) and place[name]:
                    return one_line(place[name])
        return ""

    @property
    def text(self) -> str:
        """The words of the result."""
        if self.observation.form in {Form.TEXT, Form.BINARY}:
            return self.observation.text
        found = (self.fields.get(name) for name in TEXTS)
        return next((text for text in found if isinstance(text, str)), "")

    @property
    def failure(self) -> str | None:
        """What went wrong, if the result says that something did."""
        error = self.fields.get("error")
        told = error if isinstance(error, str) else as_fields(error).get("message")
        status = str(self.fields.get("status", "")).lower()
        flagged = (
            status in {"error", "failed", "failure"}
            or self.fields.get("success") is False
            or self.fields.get("isError", self.fields.get("is_error")) is True
        )
        if error or flagged:
            return str(told) if told else self.text or described(error or "no reason given")
        plain = self.observation.form is Form.TEXT and _FAILED.match(self.observation.text)
        return self.observation.text if plain else None
