"""The result of a tool, of whatever shape: read as JSON, text or bytes, redacted, described.

`ToolUse` is a call with its result, `LineLimits` how many lines of it a history may keep. A to-do
list is read in any form in which tools write one.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from functools import cache
from itertools import islice
from typing import Any, NamedTuple, cast

import msgspec

from creonowd.model import Model
from creonowd.redaction import Redacted, RedactionEvidence, Redactor, redact_value
from creonowd.redaction.secret_names import is_secret_name
from creonowd.settings import Settings
from creonowd.text import has_too_many_values
from creonowd.threads import check_stopped, until_stopped
from creonowd.tokens.truncate import clip, one_line

_CONTEXT_ARGUMENTS = ("arguments", "args", "params", "params_input", "input")
PATH_KEYS = ("file_path", "filePath", "path", "file", "filename", "notebook_path", "relative_path")
TEXT_KEYS = ("content", "text", "stdout", "output", "result", "body", "data", "message")
_MESSAGE_KEYS = ("message", "msg", "reason", "detail", "description", "error", "text")
_CODE_KEYS = ("code", "errorCode", "error_code", "errno", "statusCode", "status_code")
_FAILURE = re.compile(
    r"\s*(?:<tool_use_error>|(?:error|fatal|failed|错误)\s*[:：]|Traceback \(most recent"
    r"|[A-Za-z_.]{0,60}(?:Error|Exception):)",
    re.IGNORECASE,
)
_BINARY = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\ufffd]")
_BASE64 = re.compile(r"(?:data:[\w.+/-]*;base64,)?[A-Za-z0-9+/_-]{512,}={0,2}\s*\Z")
_PAIR = re.compile(
    r'"(?P<key>[^"\\\n]{1,80})"\s*:\s*'
    r'(?:"(?P<text>(?:[^"\\]++|\\.)*+)(?:"|\\?\Z)'
    r"|(?P<plain>-?\d[\d.eE+-]*|true|false|null))",
    re.DOTALL,
)
_MOST_PAIRS = 10_000
_FARTHEST_PAIR = 1024 * 1024
_PART = 64 * 1024
_WRAPPERS = ("data", "result", "output")
_SAMPLE = 4096
_BINARY_SHARE = 0.02
_NESTED = 12
_DEEPEST = 100
_FEW_TEXTS = 16
_SMALL_TEXT = 4096
_BATCH = 1000


class Form(StrEnum):
    """What kind of data a tool's result is."""

    TEXT = "text"
    """Plain text."""
    JSON = "json"
    """JSON."""
    MALFORMED = "malformed"
    """JSON that is cut off or broken."""
    BINARY = "binary"
    """No text."""
    EMPTY = "empty"
    """Nothing."""


class Observation(Model):
    """A redacted result: `text` is all of it, `value` the JSON that it is.

    `verbatim` if the text has the lines of the tool's own text.
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
    """Read a result of any shape; paths below `root` become relative to it."""
    result = _join_blocks(result)
    blank = isinstance(result, str) and not result.strip()
    if result is None or blank or (isinstance(result, list | dict) and not result):
        return Observation(form=Form.EMPTY, text="")
    if _too_deep(result):
        result = _as_json(result)
    if isinstance(result, str):
        return _read_text(_without_root(result, root), redactor)
    return _read_value(without_root(result, root), redactor)


def without_root(value: Any, root: str) -> Any:
    """Make every path below `root` relative to it."""
    return _each_text(value, lambda text: _without_root(text, root)) if root else value


def _without_root(text: str, root: str) -> str:
    if not root or root not in text:
        return text
    for separator in ("/", "\\"):
        text = text.replace(root + separator, "")
    return text


def redact_json(value: Any, redactor: Redactor) -> Any:
    """Redact a decoded value, also where a secret stands in JSON inside its texts."""
    cached = cached_redactor(value, redactor)
    return redact_value(_each_text(value, lambda text: _redact_json_text(text, cached)), cached)


def _redact_json_text(text: str, redactor: Redactor, depth: int = 0) -> str:
    value = parse_json(text) if depth < _NESTED else None
    if value is None:
        return text
    deeper = _each_text(value, lambda inner: _redact_json_text(inner, redactor, depth + 1))
    clean = redact_value(deeper, redactor)
    return text if clean == value else msgspec.json.encode(clean).decode()


def as_fields(value: Any) -> dict[str, Any]:
    """Return an object's fields; anything else has none."""
    if not isinstance(value, dict):
        return {}
    return {str(key): item for key, item in cast("dict[Any, Any]", value).items()}


def as_items(value: Any) -> list[Any]:
    """Return a list's items; anything else has none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def parse_json(text: str) -> Any:
    """Read a text that is a JSON object or list.

    None if it is neither, nested too deeply or of very many values: it is a text then.
    """
    if text.lstrip()[:1] not in {"{", "["} or has_too_many_values(text.encode("utf-8", "replace")):
        return None
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return None if _too_deep(value) else value


def _indent(value: Any) -> str:
    """Write a value over many lines, so that it can be searched."""
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()


def _on_one_line(value: Any, redactor: Redactor) -> str:
    return redactor.redact(msgspec.json.encode(value).decode()).text


def _join_blocks(result: Any) -> Any:
    """Join the text blocks in which model APIs wrap results."""
    content: Any = as_fields(result).get("content", result)
    blocks = [as_fields(block) for block in as_items(content)]
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    if not blocks or len(texts) < len(blocks) or not all(isinstance(text, str) for text in texts):
        return result
    joined = "\n".join(map(str, texts))
    flags = as_fields(result)
    if flags.get("isError") is not True and flags.get("is_error") is not True:
        return joined
    error = as_fields(flags.get("error"))
    rest = {name: value for name, value in flags.items() if name != "content"}
    return {**rest, "error": {**error, "message": joined} if error else joined}


def _read_text(text: str, redactor: Redactor) -> Observation:
    clean = redactor.redact(text, "tool result")
    if is_binary(text):
        return Observation(form=Form.BINARY, text=clean.text, evidence=clean.evidence)
    value = parse_json(text)
    if value is not None:
        read = _read_value(value, redactor)
        if read.value != value and "\n" in text.strip():
            return read
        own = clean.text if read.value == value else _on_one_line(read.value, redactor)
        return msgspec.structs.replace(read, text=own, verbatim=True)
    if parse_json(text.lstrip().partition("\n")[0]) is not None:
        redacted = redactor.redact(_redact_json_lines(text, redactor)).text
        return Observation(form=Form.TEXT, text=redacted, evidence=clean.evidence, verbatim=True)
    if text.lstrip()[:1] in {"{", "["} and (pairs := _pairs(text)):
        redacted = redactor.redact(_redact_pairs(text, redactor)).text
        return Observation(
            form=Form.MALFORMED,
            text=redacted,
            value=redact_json(pairs, redactor),
            evidence=clean.evidence,
            verbatim=True,
        )
    return Observation(form=Form.TEXT, text=clean.text, evidence=clean.evidence, verbatim=True)


def _read_value(value: Any, redactor: Redactor) -> Observation:
    clean = redact_json(value, redactor)
    text = redactor.redact(_indent(clean), "tool result")
    evidence = redactor.redact(_indent(value), "tool result").evidence
    return Observation(form=Form.JSON, text=text.text, value=clean, evidence=evidence)


def is_binary(text: str) -> bool:
    """Return whether a text is binary data: control characters, or base64 from end to end."""
    sample = text[:_SAMPLE]
    odd = len(_BINARY.findall(sample))
    return "\0" in sample or odd > _BINARY_SHARE * len(sample) or bool(_BASE64.match(text))


def _pairs(text: str) -> dict[str, Any]:
    """Find the first named values of JSON that is broken or was cut off."""
    found: dict[str, Any] = {}
    for match in until_stopped(_PAIR.finditer(text, 0, _FARTHEST_PAIR)):
        if len(found) == _MOST_PAIRS:
            break
        found.setdefault(match["key"], _value(match))
    return found


def _value(match: re.Match[str]) -> Any:
    try:
        return msgspec.json.decode(match["plain"] or f'"{match["text"]}"')
    except msgspec.DecodeError:
        return match["text"] or ""


def _redact_pairs(text: str, redactor: Redactor) -> str:
    """Redact the values of secret names in broken JSON, and the JSON inside its texts."""
    is_secret = cache(is_secret_name)

    def redact_pair(match: re.Match[str]) -> str:
        if not is_secret(match["key"]) and (match["text"] or "").lstrip()[:1] not in {"{", "["}:
            return match[0]
        pair = {match["key"]: _value(match)}
        clean = redact_json(pair, redactor)
        return match[0] if clean == pair else msgspec.json.encode(clean).decode()[1:-1]

    return _PAIR.sub(redact_pair, text)


def _redact_json_lines(text: str, redactor: Redactor) -> str:
    """Redact a text of which each line may be JSON of its own, such as a log."""
    return "\n".join(_redact_some_lines(part.split("\n"), redactor) for part in _parts(text))


def _parts(text: str) -> Iterator[str]:
    """Yield a text in parts of whole lines: the values of all would take far more memory than it."""
    start = 0
    while start <= len(text):
        check_stopped()
        end = text.find("\n", start + _PART)
        yield text[start : len(text) if end < 0 else end]
        start = len(text) + 1 if end < 0 else end + 1


def _redact_some_lines(lines: list[str], redactor: Redactor) -> str:
    values = [parse_json(line) for line in lines]
    cached = cached_redactor(values, redactor)
    return "\n".join(
        _redact_pairs(line, cached) if value is None else _redact_json_text(line, cached)
        for line, value in zip(lines, values, strict=True)
    )


def _too_deep(value: Any) -> bool:
    """Return whether a value is nested too deeply for recursion, without recursion."""
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [item for one in level for item in _inner(one)]
        if not level:
            return False
    return True


def _inner(value: Any) -> list[Any]:
    items = as_items(value) if isinstance(value, list) else list(as_fields(value).values())
    return [item for item in items if isinstance(item, list | dict)]


def _as_json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except RecursionError:
        return "(nested too deeply to be shown)"


def _each_text(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        fields = cast("dict[Any, Any]", value)
        return {key: _each_text(item, change) for key, item in fields.items()}
    if isinstance(value, list):
        return [_each_text(item, change) for item in as_items(value)]
    return value


class CachedRedactor(Redactor):
    """Redacts what is not known to be clean, and no text twice."""

    def __init__(self, redactor: Redactor, clean: set[str]) -> None:
        super().__init__()
        self._redactor = redactor
        self._redacted = {text: Redacted(text, ()) for text in clean}

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        """Replace every secret by the placeholder; the evidence may name another source."""
        redacted = self._redacted.get(text)
        if redacted is None:
            redacted = self._redacted[text] = self._redactor.redact(text, source_ref)
        return redacted


def cached_redactor(value: Any, redactor: Redactor) -> Redactor:
    """Return a redactor that is quick with the texts of a value; the same one if they are few."""
    texts = list(_texts(value))
    if len(texts) <= _FEW_TEXTS:
        return redactor
    clean: set[str] = set()
    left = iter({text for text in texts if len(text) <= _SMALL_TEXT and "\n" not in text})
    while batch := list(islice(left, _BATCH)):
        checked = zip(batch, redactor.are_clean(batch), strict=True)
        clean.update(text for text, is_clean in checked if is_clean)
    return CachedRedactor(redactor, clean)


def _texts(value: Any) -> Iterator[str]:
    """List every text and every name, without recursion."""
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


def amount(count: int, noun: str) -> str:
    """Write a number of things: `1 file`, `2 files`, `2 matches`, `2 entries`."""
    if count == 1:
        return f"1 {noun}"
    plural = {"match": "matches", "entry": "entries"}.get(noun, f"{noun}s")
    return f"{count} {plural}"


def describe(value: Any) -> str:
    """Describe a value on one line; JSON is described and never repeated."""
    if isinstance(value, str):
        inner = parse_json(value)
        if inner is not None:
            return describe(inner)
        return f"binary, {amount(len(value), 'character')}" if is_binary(value) else one_line(value)
    if isinstance(value, dict):
        block = as_fields(value)
        if block.get("type") == "text" and isinstance(block.get("text"), str):
            return describe(block["text"])
        names = ", ".join(clip(name, 40) for name in list(as_fields(value))[:8])
        return f"object with {names}" if names else "empty object"
    if isinstance(value, list):
        return f"list of {len(as_items(value))}"
    return msgspec.json.encode(value).decode()


class LineLimits(NamedTuple):
    """How many lines each tool may leave in a history, and how long a line may be."""

    listing: int
    glob: int
    grep: int
    read: int
    edit: int
    errors: int
    other: int
    line: int
    total: int


def line_limits(settings: Settings) -> LineLimits:
    """Read the limits from the settings."""
    return LineLimits(
        listing=settings.tool_ls_lines,
        glob=settings.tool_glob_lines,
        grep=settings.tool_grep_lines,
        read=settings.tool_read_lines,
        edit=settings.tool_edit_lines,
        errors=settings.tool_stderr_lines,
        other=settings.tool_other_lines,
        line=settings.tool_line_chars,
        total=settings.tool_summary_chars,
    )


DEFAULT_LIMITS = line_limits(Settings())


class ToolUse(NamedTuple):
    """One call and its result, both redacted."""

    arguments: dict[str, Any]
    observation: Observation
    fields: dict[str, Any]
    limits: LineLimits

    def find(self, *names: str) -> Any:
        """Return the first of these fields in the result, its `context` or the arguments."""
        for place in (self.fields, *self._contexts, self.arguments):
            for name in names:
                if place.get(name) not in (None, ""):
                    return place[name]
        return None

    def number(self, *names: str) -> int | None:
        """Return the first of these fields if it is a whole number."""
        found = self.find(*names)
        if isinstance(found, str) and found.strip().lstrip("-").isdigit():
            return int(found)
        return found if isinstance(found, int) and not isinstance(found, bool) else None

    def items(self, *names: str) -> list[Any] | None:
        """Return a list: the result itself, or the first of these fields that is one."""
        whole: Any = self.observation.value
        if isinstance(whole, list):
            return as_items(whole)
        lists = (self.fields.get(name) for name in names)
        return next((as_items(found) for found in lists if isinstance(found, list)), None)

    @property
    def path(self) -> str:
        """The file or folder that the call is about, in its arguments or else in its result."""
        for place in (self.arguments, self.fields, *self._contexts):
            for name in PATH_KEYS:
                if isinstance(place.get(name), str) and place[name]:
                    return one_line(place[name])
        return ""

    @property
    def _contexts(self) -> tuple[dict[str, Any], ...]:
        """What a result says about its call: its `context`, and the arguments therein."""
        context = as_fields(self.fields.get("context"))
        return context, *(as_fields(context.get(name)) for name in _CONTEXT_ARGUMENTS)

    @property
    def text(self) -> str:
        """The text of the result."""
        if self.observation.form in {Form.TEXT, Form.BINARY}:
            return self.observation.text
        found = (self.fields.get(name) for name in TEXT_KEYS)
        whole = self.observation.text if self.observation.form is Form.MALFORMED else ""
        return next((text for text in found if isinstance(text, str)), whole)

    @property
    def failure(self) -> str | None:
        """The error that the result reports, if there is one."""
        error = self.fields.get("error")
        message = _error_message(error)
        status = str(self.fields.get("status", "")).lower()
        failed = (
            status in {"error", "failed", "failure"}
            or self.fields.get("success") is False
            or self.fields.get("isError", self.fields.get("is_error")) is True
        )
        if error or failed:
            return message or self.text or describe(error or "no reason given")
        is_text = self.observation.form is Form.TEXT
        begins_like_failure = is_text and _FAILURE.match(self.observation.text)
        return self.observation.text if begins_like_failure else None

    @property
    def error_codes(self) -> list[str]:
        """The codes of the error that the result reports, the most special first."""
        error = _error_fields(self.fields.get("error"))
        inner = [error.get(name) for name in _CODE_KEYS]
        named = [error.get(name) for name in ("type", "name", "status")]
        outer = [self.fields.get(name) for name in _CODE_KEYS]
        data = as_fields(error.get("data")).get("code")
        found = [data, *(filter(_is_code, inner) if any(map(_is_code, inner)) else named), *outer]
        return list(dict.fromkeys(one_line(str(code), 60) for code in found if _is_code(code)))


def _is_code(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and value != ""


def _error_fields(error: Any) -> dict[str, Any]:
    return as_fields(parse_json(error) if isinstance(error, str) else error)


def _error_message(error: Any) -> str:
    """Return what an error says, whatever its shape; nothing if there is no error."""
    fields = _error_fields(error)
    texts = (fields.get(name) for name in _MESSAGE_KEYS)
    message = next((text for text in texts if isinstance(text, str) and text), "")
    if message or not error:
        return message
    if fields:
        return "\n".join(f"{clip(name, 80)}: {describe(value)}" for name, value in fields.items())
    if isinstance(error, list):
        return "\n".join(_error_message(one) or describe(one) for one in as_items(error))
    return error if isinstance(error, str) else ""


TODO_LISTS = ("todos", "newTodos", "items", "tasks", "list")
MOST_NAMES = 3

_DONE_WORDS = frozenset({"completed", "complete", "done", "finished"})
_CURRENT_WORDS = frozenset({"in_progress", "in-progress", "inprogress", "active", "doing"})
_CANCELLED_WORDS = frozenset({"cancelled", "canceled"})


class TodoItem(Model):
    """One thing to do."""

    text: str
    """What to do."""
    status: str = "pending"
    """`pending`, `in_progress`, `completed` or `cancelled`."""


def summarise_todo(items: Sequence[TodoItem]) -> str:
    """Summarise a list: how much is done, what is current and what comes next."""
    valid = [item for item in items if _status(item) not in _CANCELLED_WORDS]
    done = sum(_status(item) in _DONE_WORDS for item in valid)
    now = [item for item in valid if _status(item) in _CURRENT_WORDS]
    rest = [item for item in valid if _status(item) not in _DONE_WORDS | _CURRENT_WORDS]
    parts = [f"{done} of {len(valid)} done", *_first_items("now", now), *_first_items("next", rest)]
    return "; ".join(parts) + "."


def read_todo(value: Any) -> list[TodoItem]:
    """Read a to-do list in any form of tools: texts, or objects with a text and a status."""
    found: list[TodoItem] = []
    for item in as_items(value):
        fields = as_fields(item)
        names = ("content", "text", "title", "task", "description", "subject", "name", "todo")
        texts = (fields.get(name) for name in names)
        text = item if isinstance(item, str) else next((t for t in texts if t), describe(item))
        found.append(TodoItem(text=str(text), status=str(fields.get("status", "pending"))))
    return found


def read_todo_call(arguments: dict[str, Any]) -> list[TodoItem]:
    """Read the list that a call writes, under any of the names that tools have for it."""
    for name in TODO_LISTS:
        if items := read_todo(arguments.get(name)):
            return items
    return []


def finished_items(items: Sequence[TodoItem]) -> list[TodoItem]:
    """List the items that are done."""
    return [item for item in items if _status(item) in _DONE_WORDS]


def _status(item: TodoItem) -> str:
    return item.status.strip().lower()


def _first_items(word: str, items: Sequence[TodoItem]) -> list[str]:
    names = [one_line(item.text, 120) for item in items[:MOST_NAMES]]
    more = len(items) - MOST_NAMES
    return [f"{word}: {', '.join(names)}{f' and {more} more' if more > 0 else ''}"] if names else []
