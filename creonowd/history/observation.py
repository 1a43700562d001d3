"""What a tool gave back, whatever its shape, without its secrets.

Knows JSON, text and bytes; knows no tool. Nothing here decides what is kept of it.
"""

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Any, cast

import msgspec

from creonowd.model import Model
from creonowd.redaction import Redacted, RedactionEvidence, Redactor, redact_value
from creonowd.redaction.labels import is_secret_name

FEW = 16
AT_ONCE = 1000
SMALL = 4096


class CachedRedactor(Redactor):
    """Looks closely at what is not known to be clean, and at no text twice."""

    def __init__(self, redactor: Redactor, clean: set[str]) -> None:
        super().__init__()
        self._redactor = redactor
        self._known = {text: Redacted(text, ()) for text in clean}

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        """Replace every secret by the placeholder; what was found is told of no source."""
        known = self._known.get(text)
        if known is None:
            known = self._known[text] = self._redactor.redact(text, source_ref)
        return known


def cached_redactor(value: Any, redactor: Redactor) -> Redactor:
    """Give a redactor that is quick with the texts of a value; the same one if they are few."""
    texts = list(_texts(value))
    if len(texts) <= FEW:
        return redactor
    clean: set[str] = set()
    left = iter({text for text in texts if len(text) <= SMALL and "\n" not in text})
    while batch := list(islice(left, AT_ONCE)):
        looked = zip(batch, redactor.surely_clean(batch), strict=True)
        clean.update(text for text, spotless in looked if spotless)
    return CachedRedactor(redactor, clean)


def _texts(value: Any) -> Iterator[str]:
    """List every text and every name, without walking down into the value itself."""
    level: list[Any] = [value]
    while level:
        one = level.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            fields = cast("dict[Any, Any]", one)
            level += [*fields.keys(), *fields.values()]
        elif isinstance(one, list):
            level += cast("list[Any]", one)


_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_BASE64 = re.compile(r"(?:data:[\w.+/-]*;base64,)?[A-Za-z0-9+/_-]{512,}={0,2}\s*\Z")
_PAIR = re.compile(
    r'"(?P<key>[^"\\\n]{1,80})"\s*:\s*'
    r'(?:"(?P<text>(?:[^"\\]++|\\.)*+)(?:"|\\?\Z)'
    r"|(?P<plain>-?\d[\d.eE+-]*|true|false|null))",
    re.DOTALL,
)
_WRAPPERS = ("data", "result", "output")
_SAMPLE = 4096
_BINARY_SHARE = 0.02
_NESTED = 12
_DEEPEST = 100


class Form(StrEnum):
    """What kind of thing a result is."""

    TEXT = "text"
    JSON = "json"
    MALFORMED = "malformed"
    BINARY = "binary"
    EMPTY = "empty"


class Observation(Model):
    """A result without its secrets: `text` is all of it, `value` what it says.

    `verbatim` if the text is what the tool gave, line for line.
    """

    form: Form
    text: str
    value: Any = None
    evidence: tuple[RedactionEvidence, ...] = ()
    verbatim: bool = False

    @property
    def fields(self) -> dict[str, Any]:
        """The named parts of a result, those inside a wrapper such as `data` among them."""
        found = as_fields(self.value)
        for name in _WRAPPERS:
            found = {**found, **as_fields(found.get(name))}
        return found


def observe(result: Any, redactor: Redactor, root: str = "") -> Observation:
    """Read a result of any shape; paths below `root` are told relative to it."""
    result = _joined(result)
    if result is None or (isinstance(result, str | list | dict) and not _stripped(result)):
        return Observation(form=Form.EMPTY, text="")
    if _too_deep(result):
        result = _spelled(result)
    if isinstance(result, str):
        return _read_text(_relative(result, root), redactor)
    return _structured(relative(result, root), redactor)


def relative(value: Any, root: str) -> Any:
    """Tell every path below `root` relative to it."""
    return _each_text(value, lambda text: _relative(text, root)) if root else value


def cleaned(value: Any, redactor: Redactor) -> Any:
    """Take secrets out of a value, also where they stand in JSON inside its texts."""
    glancing = cached_redactor(value, redactor)
    return redact_value(_each_text(value, lambda text: _clean_json(text, glancing)), glancing)


def as_fields(value: Any) -> dict[str, Any]:
    """Give an object's fields; anything else has none."""
    if not isinstance(value, dict):
        return {}
    return {str(key): item for key, item in cast("dict[Any, Any]", value).items()}


def as_items(value: Any) -> list[Any]:
    """Give a list's items; anything else has none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def parsed(text: str) -> Any:
    """Read a text that is a JSON object or list; None if it is neither, or too deep to look into."""
    if text.lstrip()[:1] not in {"{", "["}:
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return None if _too_deep(value) else value


def pretty(value: Any) -> str:
    """Spell a value over many lines, so that it can be searched."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _stripped(result: Any) -> Any:
    return result.strip() if isinstance(result, str) else result


def _joined(result: Any) -> Any:
    """Put together the text blocks in which model APIs wrap results."""
    content: Any = as_fields(result).get("content", result)
    blocks = [as_fields(block) for block in as_items(content)]
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    if not blocks or len(texts) < len(blocks) or not all(isinstance(text, str) for text in texts):
        return result
    joined = "\n".join(map(str, texts))
    flags = as_fields(result)
    failed = flags.get("isError") is True or flags.get("is_error") is True
    error: dict[str, Any] = {"error": joined}
    return error if failed else joined


def _read_text(text: str, redactor: Redactor) -> Observation:
    clean = redactor.redact(text, "tool result")
    if is_binary(text):
        return Observation(form=Form.BINARY, text=clean.text, evidence=clean.evidence)
    value = parsed(text)
    if value is not None:
        made = _structured(value, redactor)
        if made.value != value:
            return made
        return msgspec.structs.replace(made, text=clean.text, verbatim=True)
    if text.lstrip()[:1] in {"{", "["} and (pairs := _salvaged(text)):
        hidden = redactor.redact(_without_named(text, redactor)).text
        found = cleaned(pairs, redactor)
        return Observation(form=Form.MALFORMED, text=hidden, value=found, evidence=clean.evidence)
    return Observation(form=Form.TEXT, text=clean.text, evidence=clean.evidence, verbatim=True)


def _structured(value: Any, redactor: Redactor) -> Observation:
    clean = cleaned(value, redactor)
    text = redactor.redact(pretty(clean), "tool result")
    evidence = redactor.redact(pretty(value), "tool result").evidence
    return Observation(form=Form.JSON, text=text.text, value=clean, evidence=evidence)


def is_binary(text: str) -> bool:
    """Tell whether a text is bytes in disguise: control characters, or base64 from end to end."""
    sample = text[:_SAMPLE]
    odd = len(_BINARY.findall(sample))
    return "\0" in sample or odd > _BINARY_SHARE * len(sample) or bool(_BASE64.match(text))


def _salvaged(text: str) -> dict[str, Any]:
    """Find the named values of JSON that is broken or was cut off."""
    found: dict[str, Any] = {}
    for match in _PAIR.finditer(text):
        found.setdefault(match["key"], _value(match))
    return found


def _value(match: re.Match[str]) -> Any:
    try:
        return msgspec.json.decode(match["plain"] or f'"{match["text"]}"')
    except msgspec.DecodeError:
        return match["text"] or ""


def _without_named(text: str, redactor: Redactor) -> str:
    """Take out of broken JSON what a secret's name holds, or JSON inside its texts."""
    secret = cache(is_secret_name)

    def hidden(match: re.Match[str]) -> str:
        if not secret(match["key"]) and (match["text"] or "").lstrip()[:1] not in {"{", "["}:
            return match[0]
        pair = {match["key"]: _value(match)}
        clean = cleaned(pair, redactor)
        return match[0] if clean == pair else msgspec.json.encode(clean).decode()[1:-1]

    return _PAIR.sub(hidden, text)


def _too_deep(value: Any) -> bool:
    """Tell whether a value is nested deeper than it can be walked, without walking down itself."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [item for one in level for item in _inner(one)]
        if not level:
            return False
    return True


def _inner(value: Any) -> list[Any]:
    items = as_items(value) if isinstance(value, list) else list(as_fields(value).values())
    return [item for item in items if isinstance(item, list | dict)]


def _spelled(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "(nested too deeply to be told)"


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {key: _each_text(item, change) for key, item in fields.items()}
    if isinstance(value, list):
        return [_each_text(item, change) for item in as_items(value)]
    return value


def _clean_json(text: str, redactor: Redactor, depth: int = 0) -> str:
    value = parsed(text) if depth < _NESTED else None
    if value is None:
        return text
    deeper = _each_text(value, lambda inner: _clean_json(inner, redactor, depth + 1))
    clean = redact_value(deeper, redactor)
    return text if clean == value else msgspec.json.encode(clean).decode()


def _relative(text: str, root: str) -> str:
    if not root or root not in text:
        return text
    for separator in ("/", "\\"):
        text = text.replace(root + separator, "")
    return text
