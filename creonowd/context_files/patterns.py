r"""One pattern language for both search engines: what RE2 accepts, spelled so that both agree.

A pattern is matched within one line, and a line's end, `\n` or `\r\n`, is no part of it:

- `^`, `$`, `\A`, `\z` are the ends of the line; `.`, negated classes and escapes match no
  carriage return; only one that is written out does;
- `\d`, `\w`, `\b` are ASCII (so a key beside a Han character is found), `\s` is any space,
  full-width ones too; for Han there is `\p{Han}`, for letters `\p{L}`;
- case folding is Unicode's simple one; `\C`, look-around and back-references do not exist.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from creonowd.errors import DaemonError, ErrorCode

MAX_LENGTH = 1000
# Each may grow to 8 MB while it searches.
MOST_COMPILED = 4

_LINE_START = "(?m:^)"
_LINE_END = r"(?m:\r?$)"
_ANCHORS = {
    "^": _LINE_START,
    r"\A": _LINE_START,
    "$": _LINE_END,
    r"\z": _LINE_END,
    ".": r"[^\r\n]",
}
_WORD_BOUNDARY = re.compile(r"(\\[bB])")
_CONTROL_CODES = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_LINE_FEED = 10

_ESCAPES = r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\(?P<sign>[pP])(?:\{(?P<long>\^?\w+)\}|(?P<short>\w))
    | \\(?P<perl>[dDwWsS])
    | \\(?P<bound>[bB])
    | (?P<edge>\\[Az])
    | \\x\{(?P<wide>[0-9A-Fa-f]+)\} | \\x(?P<hex>[0-9A-Fa-f]{2})
    | \\(?P<octal>0[0-7]{0,2}|[1-7][0-7]{1,2})
    | \\(?P<control>[aftnrv])
    | \\(?P<literal>.)"""
_OPERATORS = r"""(?P<group>\((?:\?P?<[^>]*>|\?(?P<flags>[a-zA-Z-]*)(?P<scope>[:)]))?)
    | (?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)
    | (?P<syntax>[|)])"""
_FLAGS = re.VERBOSE | re.DOTALL | re.ASCII
_TOKEN = re.compile(f"{_ESCAPES} | {_OPERATORS} | (?P<char>.)", _FLAGS)
_CLASS_ITEM = re.compile(rf"\[:(?P<posix>\^?\w+):\] | {_ESCAPES} | (?P<char>.)", _FLAGS)


@lru_cache(maxsize=256)
def translate(pattern: str, *, case_sensitive: bool) -> str:
    """Spell a pattern so that ripgrep and RE2 read the same; INVALID_ARGUMENT if RE2 refuses it."""
    _compile(pattern)
    body = "".join(_translate_tokens(pattern))
    translated = body if case_sensitive else f"(?i){body}"
    compile_translated(translated)
    return translated


def for_ripgrep(translated: str) -> str:
    """Spell out for ripgrep what RE2 takes for granted: words are ASCII."""
    return _WORD_BOUNDARY.sub(r"(?-u:\1)", translated)


@lru_cache(maxsize=MOST_COMPILED)
def compile_translated(translated: str) -> Any:
    """Compile a translated pattern for searching UTF-8 bytes, many lines at once."""
    return _compile(translated)


def _compile(pattern: str) -> Any:
    import re2

    options: Any = re2.Options()
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    engine: Any = re2
    try:
        return engine.compile(pattern.encode("utf-8"), options)
    except engine.error as error:
        reason = str(error.args[0], "utf-8", "replace")
        raise _invalid_pattern(
            f"The pattern is not valid: {reason}. Escape what is meant literally."
        ) from None
    except UnicodeEncodeError:
        raise _invalid_pattern(
            "The pattern holds half a character; send it as valid Unicode."
        ) from None
    finally:
        engine.purge()  # it would keep the last 128 patterns for good


def _translate_tokens(pattern: str) -> Iterator[str]:
    position = 0
    while position < len(pattern):
        if pattern[position] == "[":
            position, text = _translate_class(pattern, position + 1)
            yield text
            continue
        token = _TOKEN.match(pattern, position)
        assert token is not None
        position = token.end()
        yield _translate_token(token)


def _translate_token(token: "re.Match[str]") -> str:
    if (quoted := token["quoted"]) is not None:
        return "".join(_literal(ord(char)) for char in quoted)
    if token["group"] is not None:
        return _translate_group(token)
    if token["bound"] is not None:
        return f"\\{token['bound']}"
    if (perl := token["perl"]) is not None:
        return f"[{_PERL_CLASSES[perl]}]"
    if token["sign"] is not None:
        return rf"[^{_property(token, inverted=True)}\r\n]"
    operator = token["repeat"] or token["syntax"]
    return operator or _ANCHORS.get(token["edge"] or token["char"] or "") or _literal(_code(token))


def _translate_group(token: "re.Match[str]") -> str:
    """Keep the flags that have a meaning within a line; names and captures have none."""
    if token["scope"] is None:
        return "(?:"
    on, minus, off = (token["flags"] or "").partition("-")
    flags = "".join(flag for flag in on if flag in "iU")
    flags_off = "".join(flag for flag in off if flag in "iU")
    if flags_off:
        flags += minus + flags_off
    if token["scope"] == ":":
        return f"(?{flags}:"
    return f"(?{flags})" if flags else "(?:)"


def _translate_class(pattern: str, position: int) -> tuple[int, str]:
    """Translate the class whose `[` stands before `position`; return its end and its spelling."""
    negated = pattern[position] == "^"
    if negated:
        position += 1
    parts: list[str] = []
    while not parts or pattern[position] != "]":
        position, part = _translate_class_item(pattern, position)
        parts.append(part)
    body = "".join(parts)
    if negated:
        return position + 1, rf"[^{body}\r\n]"
    return position + 1, f"[{body}]" if body else _NOTHING


def _translate_class_item(pattern: str, position: int) -> tuple[int, str]:
    item = _CLASS_ITEM.match(pattern, position)
    assert item is not None
    position = item.end()
    if item["posix"] is not None:
        return position, _posix_class(item["posix"])
    if (perl := item["perl"]) is not None:
        return position, _PERL_CLASSES[perl]
    if item["sign"] is not None:
        return position, _property(item, inverted=False)
    code = _code(item)
    if pattern[position : position + 1] == "-" and pattern[position + 1 : position + 2] != "]":
        high = _CLASS_ITEM.match(pattern, position + 1)
        assert high is not None
        return high.end(), _spell([(code, _code(high))])
    return position, "" if code == _LINE_FEED else _spell([(code, code)])


def _property(token: "re.Match[str]", *, inverted: bool) -> str:
    name = token["long"] or token["short"]
    negative = (token["sign"] == "P") ^ name.startswith("^") ^ inverted
    return rf"\{'P' if negative else 'p'}{{{name.removeprefix('^')}}}"


def _code(token: "re.Match[str]") -> int:
    """Return the code of the one character that a token stands for."""
    if (digits := token["wide"] or token["hex"]) is not None:
        return int(digits, 16)
    if token["octal"] is not None:
        return int(token["octal"], 8)
    if token["control"] is not None:
        return _CONTROL_CODES[token["control"]]
    if token["literal"] == "C":
        raise _invalid_pattern(r"The pattern holds \C, which has no meaning in text.")
    return ord(token["literal"] or token["char"])


def _literal(code: int) -> str:
    if code == _LINE_FEED:
        raise _invalid_pattern(
            "The pattern holds a line break, but is matched line by line; leave it out."
        )
    return _spell([(code, code)])


def _invalid_pattern(message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="pattern")


Ranges = Sequence[tuple[int, int]]

_LAST_CODE = 0x10FFFF
_NOTHING = r"[^\x{0}-\x{10FFFF}]"

_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = (*_DIGIT, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACES = (0x09, 0x0B, 0x0C, 0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
_SPACE: Ranges = (*((code, code) for code in _SPACES), (0x2000, 0x200A))
_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D))
# These two fold to ASCII letters: were they in `\W`, ignoring case would let it match `s` and `k`.
_LIKE_ASCII: Ranges = ((0x17F, 0x17F), (0x212A, 0x212A))

_POSIX: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": _WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}


def _posix_class(name: str) -> str:
    """Write the class `[:name:]`, or its complement for `^name`, as the inside of a class."""
    outside = _complement(_POSIX[name.removeprefix("^")], line_ends=name.startswith("^"))
    return _spell(outside if name.startswith("^") else _complement(outside))


def _complement(ranges: Ranges, *, line_ends: bool = True) -> Ranges:
    """List what lies in none of the ranges and, unless `line_ends` is false, is no line end."""
    gaps: list[tuple[int, int]] = []
    free = 0
    for low, high in sorted([*ranges, *(_LINE_ENDS if line_ends else ())]):
        if low > free:
            gaps.append((free, low - 1))
        free = max(free, high + 1)
    return [*gaps, (free, _LAST_CODE)] if free <= _LAST_CODE else gaps


def _spell(ranges: Ranges) -> str:
    """Write ranges as the inside of a class, escaping all but plain letters and digits."""
    return "".join(
        _char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges
    )


def _char(code: int) -> str:
    plain = chr(code).isalnum() or chr(code) == "_"
    return chr(code) if plain and not 0xD800 <= code <= 0xDFFF else f"\\x{{{code:x}}}"


_PERL_CLASSES = {
    "d": _spell(_DIGIT),
    "w": _spell(_WORD),
    "s": _spell(_SPACE),
    "D": _spell(_complement(_DIGIT)),
    "W": _spell(_complement([*_WORD, *_LIKE_ASCII])),
    "S": _spell(_complement(_SPACE)),
}
