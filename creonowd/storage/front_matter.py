"""Read front matter: the YAML 1.2 between two `---` lines at the top of a text.

What could be dangerous in the YAML of others is a fault: aliases, tags, depth, size, repeated keys.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, cast

import yaml12
from msgspec.structs import replace

from creonowd.errors import Wording
from creonowd.model import Model

MAX_BYTES = 64 * 1024
MAX_DEPTH = 32
CACHED_HEADERS = 1024
LONGEST_CACHED = 2048

# Front matter that reaches so far is over the limit in any case.
_LONGEST = 2 * MAX_BYTES

_STARTS = ("---", "\ufeff---")
_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*$", re.MULTILINE)
_LINE_END = r"(?:\r\n?+|\n)"
_WHOLE = re.compile(
    rf"\ufeff?+---[ \t]*+{_LINE_END}(?:[^\r\n]*+{_LINE_END})*?"
    rf"(?:---|\.\.\.)[ \t]*+(?:\Z|{_LINE_END}(?:[ \t]*+{_LINE_END})*+)"
)
_ERROR = re.compile(r"YAML parse error: (.*) at byte (\d+) line (\d+) column \d+", re.DOTALL)
_INDENT = re.compile(r"( *)((?:[-?:][ \t]+)*)")
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufeff]")

# The first line of a file is the opening `---`.
_FIRST_LINE = 2

_KEY = re.compile(
    r"""( *)((?:-[ \t]+)*)(?:"([^"]*)"|'([^']*)'|([^\s"'#\[{&*!|>%@`-][^:]*?))[ \t]*:(?=[ \t]|$)(.*)"""
)
_ITEM = re.compile(r"( *)-(?:[ \t]|$)")
_BLOCK = re.compile(r"[ \t][|>][-+0-9]*[ \t]*(?:#.*)?")
_VALUE = re.compile(
    r"""([^:]*:)([ \t]*)(?:"[^"]*"|'[^']*'|[^\s"'#][^#]*?)?((?:[ \t]+#.*)?[ \t]*)$"""
)
_FLOW = re.compile(
    r""""(?:\\.|[^"\\])*"|'(?:''|[^'])*'|#.*|[{}\[\],]|:(?=\s)|[^\s{}\[\],"'#:]+|."""
)

_NOT_CLOSED = Wording(
    "The front matter is not closed by a line `---`.", "文件头没有以一行 --- 结束。"
)
_TOO_LARGE = Wording(
    "The front matter has {} bytes; {} is the limit.", "文件头有 {} 字节，上限为 {}。"
)
_CONTROL = Wording("This has the control character {}.", "此处有控制字符 {}。")
_TOO_DEEP = Wording("This is nested more than {} levels deep.", "此处嵌套超过 {} 层。")
_NO_MAPPING = Wording(
    "The front matter must be a mapping.", "文件头须由“键: 值”组成，冒号须为半角。"
)
_REPEATED = Wording("`{}` stands here a second time.", "`{}` 在此重复出现。")
_NOT_YAML = Wording("This is not YAML: {}.", "此处不是合法的 YAML：{}。")
# What the parser reports, by a word of its message, in words for an author.
_REASONS = (
    ("trailing content", Wording("text follows a quotation mark", "引号结束之后还有文字")),
    (
        "escape|hexadecimal",
        Wording(
            "in double quotes a backslash has a meaning; use single quotes",
            "双引号里的反斜杠另有含义，请改用单引号",
        ),
    ),
    ("quoted", Wording("a quotation mark is not closed", "引号没有成对")),
    (
        "flow|bracket|illegal placement",
        Wording("a bracket is not closed, or closes nothing", "括号没有成对"),
    ),
    (r"\btabs?\b", Wording("a tab; indent with spaces", "缩进请用空格，不要用制表符")),
    (
        "unexpected character|plain scalar",
        Wording("a text must not begin like this; quote it", "文字不能这样开头，请加引号"),
    ),
    (
        "mapping values",
        Wording(
            "a second colon, or an indentation that does not fit; quote text that has a colon",
            "多了一个冒号，或缩进不齐；含冒号的文字请加引号，键后的冒号须为半角",
        ),
    ),
    (
        "key|block|indent|comment|anchor|node|document",
        Wording(
            "this is no `key: value`, or its indentation does not fit",
            "此处不是“键: 值”，或缩进不齐；冒号须为半角",
        ),
    ),
)
_OTHER_REASON = "写法有误"
_ANCHOR = Wording(
    "Anchors and aliases are not allowed; quote text that begins with & or *.",
    "不允许锚点和别名；以 & 或 * 开头的文字请加引号。",
)
_TAG = Wording("Tags are not allowed.", "不允许标签。")
_KEY_NO_TEXT = Wording("The key {} must be text; quote it.", "键 {} 须为文本，请加引号。")


class Fault(Model):
    """What is wrong with a key, in both languages, and the line of the file that it stands on."""

    key: str
    wording: Wording
    line: int | None = None

    @property
    def message(self) -> str:
        """What is wrong, in English."""
        return self.wording.english


class FrontMatter(Model):
    """The values, and the body below them; if there are faults, `values` is empty.

    `body_line` is the line of the file on which the body begins.
    """

    values: dict[str, Any]
    body: str
    body_line: int = 1
    faults: tuple[Fault, ...] = ()
    lines: Mapping[str, int] = {}

    def line_of(self, key: str) -> int | None:
        """Return the line of a dotted key, or of the nearest key above it."""
        while key and key not in self.lines:
            key = key.rpartition(".")[0]
        return self.lines.get(key)


def read(text: str) -> FrontMatter | None:
    """Read the front matter of a text; None if it has none.

    Line ends and a byte order mark do not matter. What is wrong is a fault, never an exception.
    """
    if not text.startswith(_STARTS):
        return None
    whole = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    opening = _OPENING.match(whole)
    if opening is None:
        return None
    closing = _CLOSING.search(whole, opening.end())
    if closing is None:
        return FrontMatter(values={}, body="", faults=(Fault(key="", wording=_NOT_CLOSED, line=1),))
    header = whole[opening.end() : closing.start()]
    body = whole[closing.end() :].removeprefix("\n")
    if len(header) > LONGEST_CACHED:
        return _parse(header, body)
    found = _parse_cached(header)
    return replace(found, body=body, values=dict(found.values))


class TextParts(NamedTuple):
    """A text cut below its front matter and the blank lines that follow it; `values` are its own."""

    front_matter: str
    body: str
    values: Mapping[str, Any]


def split(text: str) -> TextParts:
    """Cut a text into front matter and body, which together are the text.

    Where there is no front matter, or it has faults, everything is the body: prose may stand
    between two lines `---` too.
    """
    whole = _WHOLE.match(text, 0, _LONGEST) if text.startswith(_STARTS) else None
    found = None if whole is None else read(whole[0])
    if whole is None or found is None or found.faults:
        return TextParts("", text, {})
    return TextParts(whole[0], text[whole.end() :], found.values)


def with_value(text: str, key: str, value: str) -> str | None:
    """Return a text whose front matter has a plain value under a key; all else stays as it is.

    Front matter is added where there is none. None if it has faults, or is written in a way that
    keeps a line from being changed alone.
    """
    found = read(text)
    if found is None:
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        ends = re.search(_LINE_END, text)
        end = "\n" if ends is None else ends[0]
        return f"{mark}---{end}{key}: {value}{end}---{end}{text.removeprefix(mark)}"
    if found.faults:
        return None
    if found.values.get(key) == value:
        return text
    lines = re.split(f"({_LINE_END})", text)
    line = found.line_of(key)
    if line is None:
        first = min(found.lines.values(), default=0)
        indent = _indent(lines[2 * (first - 1)]) if first else ""
        closing = next(at for at in range(2, len(lines), 2) if _CLOSING.fullmatch(lines[at]))
        lines.insert(closing, f"{indent}{key}: {value}{lines[1]}")
    else:
        at = 2 * (line - 1)
        lines[at] = _VALUE.sub(
            lambda match: f"{match[1]}{match[2] or ' '}{value}{match[3]}", lines[at], count=1
        )
    changed = "".join(lines)
    now = read(changed)
    is_right = now is not None and now.values == {**found.values, key: value}
    return changed if is_right and now is not None and now.body == found.body else None


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" "))]


def _size_fault(header: str) -> Fault | None:
    size = len(header.encode("utf-8", "replace"))
    if size > MAX_BYTES:
        return Fault(key="", wording=_TOO_LARGE.format(size, MAX_BYTES))
    if control := _UNPRINTABLE.search(header):
        line = header.count("\n", 0, control.start()) + 2
        return Fault(key="", wording=_CONTROL.format(repr(control[0])), line=line)
    return _depth_fault(header)


def _depth_fault(header: str) -> Fault | None:
    stack: list[int] = []
    for number, line in enumerate(header.split("\n"), start=_FIRST_LINE):
        steps = _INDENT.match(line)
        if steps is None or not line.strip():
            continue
        while stack and stack[-1] >= len(steps[1]):
            stack.pop()
        stack.append(len(steps[1]))
        # The parser recurses without end: a file nested deeply enough would end the process.
        if len(stack) + len(steps[2].split()) > MAX_DEPTH:
            return Fault(key="", wording=_TOO_DEEP.format(MAX_DEPTH), line=number)
    return None


@lru_cache(maxsize=CACHED_HEADERS)
def _parse_cached(header: str) -> FrontMatter:
    """Parse a header, or return what an earlier call returned: several readers parse the same file."""
    return _parse(header, "")


def _parse(header: str, body: str) -> FrontMatter:
    if fault := _size_fault(header):
        return FrontMatter(values={}, body=body, faults=(fault,))
    # `@` may stand wherever `&` and `*` are mere text, and nowhere where they begin an anchor or
    # alias. So if this parses, the header has neither, and parsing it cannot blow up.
    try:
        if "&" in header or "*" in header:
            yaml12.parse_yaml(header.translate({ord("&"): "@", ord("*"): "@"}))
        value = yaml12.parse_yaml(header)
    except ValueError as error:
        return FrontMatter(values={}, body=body, faults=(_parse_fault(header, str(error)),))
    if value is None:
        return FrontMatter(values={}, body=body)
    if not isinstance(value, dict):
        fault = Fault(key="", wording=_NO_MAPPING, line=2)
        return FrontMatter(values={}, body=body, faults=(fault,))
    values = cast("dict[Any, Any]", value)
    found = list(_key_lines(header))
    lines = dict(reversed(found))
    faults = (
        *(
            Fault(key=key, wording=_REPEATED.format(key), line=line)
            for key, line in _repeated_keys(header, found)
        ),
        *_value_faults(values, "", lines),
    )
    return FrontMatter(
        values={} if faults else values,
        body=body,
        body_line=header.count("\n") + 3,
        faults=faults,
        lines=lines,
    )


def _parse_fault(header: str, error: str) -> Fault:
    match = _ERROR.fullmatch(error)
    if match is None:
        return Fault(key="", wording=_NOT_YAML.format(_reason(error)))
    # The parser's byte is a code point. What it misses at the end of the header is reported for
    # the last line that is not blank.
    last = header.rstrip().count("\n") + _FIRST_LINE
    reason, at, line = match[1], int(match[2]), min(last, int(match[3]) + 1)
    if header[at : at + 1] in {"&", "*"}:
        return Fault(key="", wording=_ANCHOR, line=line)
    return Fault(key="", wording=_NOT_YAML.format(_reason(reason)), line=line)


def _reason(message: str) -> Wording:
    """Return in both languages what the parser reports in English."""
    known = (wording for words, wording in _REASONS if re.search(words, message))
    return next(known, Wording(message, _OTHER_REASON))


def _value_faults(value: Any, key: str, lines: Mapping[str, int]) -> Iterator[Fault]:
    if isinstance(value, yaml12.Yaml):
        yield Fault(key=key, wording=_TAG, line=lines.get(key))
    elif isinstance(value, dict):
        for name, item in cast("dict[Any, Any]", value).items():
            if not isinstance(name, str):
                yield Fault(key=key, wording=_KEY_NO_TEXT.format(repr(name)), line=lines.get(key))
                continue
            yield from _value_faults(item, f"{key}.{name}" if key else name, lines)
    elif isinstance(value, list):
        for item in cast("list[Any]", value):
            yield from _value_faults(item, key, lines)


class _KeyLine(NamedTuple):
    """A dotted key and its line in the file, whose first line is the opening `---`."""

    key: str
    line: int


def _key_lines(header: str) -> Iterator["_KeyLine"]:
    """Find the keys of block mappings, skipping the text of block scalars."""
    above: list[tuple[int, str]] = []
    scalar: int | None = None
    for number, line in enumerate(header.split("\n"), start=_FIRST_LINE):
        indent = len(line) - len(line.lstrip(" "))
        if scalar is not None and (indent > scalar or not line.strip()):
            continue
        scalar = None
        if _ITEM.match(line):
            above = [*_parents(above, indent), (indent, str(number))]
        if match := _KEY.match(line):
            column = indent + len(match[2])
            above = [*_parents(above, column), (column, match[3] or match[4] or match[5])]
            scalar = column if _BLOCK.fullmatch(match[6]) else None
            yield _KeyLine(".".join(key for _, key in above), number)


def _parents(above: list[tuple[int, str]], column: int) -> list[tuple[int, str]]:
    return [step for step in above if step[0] < column]


def _repeated_keys(header: str, found: Sequence["_KeyLine"]) -> Iterator["_KeyLine"]:
    """Find the keys that a mapping has twice, in block or in flow style."""
    seen: set[str] = set()
    lines = header.split("\n")
    for key, line in found:
        if key in seen:
            yield _KeyLine(key, line)
        seen.add(key)
        if _flow_mapping(lines, line, 2) and (
            name := _repeated_in_flow(_flow_mapping(lines, line, len(lines)))
        ):
            yield _KeyLine(f"{key}.{name}", line)


def _flow_mapping(lines: Sequence[str], line: int, count: int) -> str:
    """Return the text after a key if it begins a flow mapping."""
    rest = "\n".join(lines[line - _FIRST_LINE :][:count]).partition(":")[2].lstrip()
    return rest if rest.startswith("{") else ""


def _repeated_in_flow(text: str) -> str | None:
    """Return a key that the flow mapping at the start of a text has twice."""
    depth, before = 0, ""
    seen: set[str] = set()
    for piece in (match[0] for match in _FLOW.finditer(text) if match[0].strip()):
        if piece[0] == "#":
            continue
        if piece in "{[":
            depth += 1
        elif piece in "}]":
            depth -= 1
        if depth == 0:
            return None
        if depth == 1 and before in {"{", ","} and piece not in "{}[],":
            name = piece.strip("\"'")
            if name in seen:
                return name
            seen.add(name)
        before = piece
    return None
