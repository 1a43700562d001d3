r"""One pattern language for both search engines: what RE2 accepts, spelled so that both agree.

Knows regular expressions; searches nothing. A pattern is matched within one line, and a line's
end, `\n` or `\r\n`, is no part of it:

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

Ranges = Sequence[tuple[int, int]]

LAST = 0x10FFFF
NOTHING = r"[^\x{0}-\x{10FFFF}]"

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


def spelled(ranges: Ranges) -> str:
    """Write ranges as the inside of a class, escaping all but plain letters and digits."""
    return "".join(
        _char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges
    )


def posix(name: str) -> str:
    """Write the class `[:name:]`, or its complement for `^name`, as the inside of a class."""
    ranges = _POSIX[name.removeprefix("^")]
    return spelled(complement(ranges if name.startswith("^") else complement(ranges, ends=False)))


def complement(ranges: Ranges, *, ends: bool = True) -> Ranges:
    """List what lies in none of the ranges, leaving out line ends unless told not to."""
    gaps: list[tuple[int, int]] = []
    free = 0
    for low, high in sorted([*ranges, *(_LINE_ENDS if ends else ())]):
        if low > free:
            gaps.append((free, low - 1))
        free = max(free, high + 1)
    return [*gaps, (free, LAST)] if free <= LAST else gaps


def _char(code: int) -> str:
    plain = chr(code).isalnum() or chr(code) == "_"
    return chr(code) if plain and not 0xD800 <= code <= 0xDFFF else f"\\x{{{code:x}}}"


POSITIVE = {"d": spelled(_DIGIT), "w": spelled(_WORD), "s": spelled(_SPACE)}
NEGATED = {
    "D": spelled(complement(_DIGIT)),
    "W": spelled(complement([*_WORD, *_LIKE_ASCII])),
    "S": spelled(complement(_SPACE)),
}


LONGEST = 1000

_LINE_START = "(?m:^)"
_LINE_END = r"(?m:\r?$)"
_ANCHORS = {
    "^": _LINE_START,
    r"\A": _LINE_START,
    "$": _LINE_END,
    r"\z": _LINE_END,
    ".": r"[^\r\n]",
}
_BOUNDARY = re.compile(r"(\\[bB])")
_ESCAPED = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}

_TOKEN = re.compile(
    r"""\\Q(?P<quoted>.*?)(?:\\E|\Z)
    | \\(?P<sign>[pP])(?:\{(?P<long>\^?\w+)\}|(?P<short>\w))
    | \\(?P<perl>[dDwWsS])
    | \\(?P<bound>[bB])
    | (?P<edge>\\[Az])
    | \\x\{(?P<wide>[0-9A-Fa-f]+)\} | \\x(?P<hex>[0-9A-Fa-f]{2})
    | \\(?P<octal>0[0-7]{0,2}|[1-7][0-7]{1,2})
    | \\(?P<control>[aftnrv])
    | \\(?P<literal>.)
    | (?P<group>\((?:\?P?<[^>]*>|\?(?P<flags>[a-zA-Z-]*)(?P<scope>[:)]))?)
    | (?P<repeat>(?:[*+?]|\{\d+(?:,\d*)?\})\??)
    | (?P<syntax>[|)])
    | (?P<char>.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_ITEM = re.compile(
    r"\[:(?P<posix>\^?\w+):\]|" + _TOKEN.pattern.split("| (?P<group>")[0] + "| (?P<char>.)",
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@lru_cache(maxsize=256)
def translate(pattern: str, *, case_sensitive: bool) -> str:
    """Spell a pattern so that ripgrep and RE2 read the same; INVALID_ARGUMENT if RE2 refuses it."""
    _compiled(pattern)
    body = "".join(_translated(pattern))
    translated = body if case_sensitive else f"(?i){body}"
    compiled(translated)
    return translated


def for_ripgrep(translated: str) -> str:
    """Say to ripgrep what RE2 takes for granted: words are ASCII."""
    return _BOUNDARY.sub(r"(?-u:\1)", translated)


@lru_cache(maxsize=64)
def compiled(translated: str) -> Any:
    """Compile a translated pattern for searching UTF-8 bytes, many lines at once."""
    return _compiled(translated)


def _compiled(pattern: str) -> Any:
    import re2

    options: Any = re2.Options()
    options.never_nl = True
    options.never_capture = True
    options.log_errors = False
    engine: Any = re2
    try:
        return engine.compile(pattern.encode("utf-8"), options)
    except engine.error as error:
        said = str(error.args[0], "utf-8", "replace")
        raise _refused(
            f"The pattern is not valid: {said}. Escape what is meant literally."
        ) from None
    except UnicodeEncodeError:
        raise _refused("The pattern holds half a character; send it as valid Unicode.") from None


def _translated(pattern: str) -> Iterator[str]:
    place = 0
    while place < len(pattern):
        if pattern[place] == "[":
            end, text = _class(pattern, place + 1)
            place = end
            yield text
            continue
        token = _TOKEN.match(pattern, place)
        assert token is not None
        place = token.end()
        yield _outside(token)


def _outside(token: "re.Match[str]") -> str:
    if (quoted := token["quoted"]) is not None:
        return "".join(_literal(ord(char)) for char in quoted)
    if token["group"] is not None:
        return _group(token)
    as_is = token["repeat"] or token["syntax"]
    if token["bound"] is not None:
        as_is = f"\\{token['bound']}"
    return as_is or _shorthand(token) or _literal(_code(token))


def _shorthand(token: "re.Match[str]") -> str | None:
    if (perl := token["perl"]) is not None:
        return f"[{POSITIVE.get(perl) or NEGATED[perl]}]"
    if token["sign"] is not None:
        return rf"[^{_property(token, inverted=True)}\r\n]"
    return _ANCHORS.get(token["edge"] or token["char"] or "")


def _group(token: "re.Match[str]") -> str:
    """Keep the flags that have a meaning within a line; names and captures have none."""
    if token["scope"] is None:
        return "(?:"
    on, minus, off = (token["flags"] or "").partition("-")
    kept = "".join(flag for flag in on if flag in "iU")
    kept_off = "".join(flag for flag in off if flag in "iU")
    flags = kept + (minus + kept_off if kept_off else "")
    if token["scope"] == ":":
        return f"(?{flags}:"
    return f"(?{flags})" if flags else "(?:)"


def _class(pattern: str, place: int) -> tuple[int, str]:
    negated = pattern[place] == "^"
    place += negated
    parts: list[str] = []
    first = True
    while first or pattern[place] != "]":
        first = False
        place, part = _class_part(pattern, place)
        parts.append(part)
    body = "".join(parts)
    if negated:
        return place + 1, rf"[^{body}\r\n]"
    return place + 1, f"[{body}]" if body else NOTHING


def _class_part(pattern: str, place: int) -> tuple[int, str]:
    low = _ITEM.match(pattern, place)
    assert low is not None
    place = low.end()
    special = _special(low)
    if special is not None:
        return place, special
    code = _code(low)
    if pattern[place : place + 1] == "-" and pattern[place + 1 : place + 2] != "]":
        high = _ITEM.match(pattern, place + 1)
        assert high is not None
        return high.end(), spelled([(code, _code(high))])
    return place, "" if code == 10 else spelled([(code, code)])


def _special(item: "re.Match[str]") -> str | None:
    if item["posix"] is not None:
        return posix(item["posix"])
    if (perl := item["perl"]) is not None:
        return POSITIVE.get(perl) or NEGATED[perl]
    if item["sign"] is not None:
        return _property(item, inverted=False)
    return None


def _property(token: "re.Match[str]", *, inverted: bool) -> str:
    name = token["long"] or token["short"]
    negative = (token["sign"] == "P") ^ name.startswith("^") ^ inverted
    return rf"\{'P' if negative else 'p'}{{{name.removeprefix('^')}}}"


def _code(token: "re.Match[str]") -> int:
    if (wide := token["wide"] or token["hex"]) is not None:
        return int(wide, 16)
    if token["octal"] is not None:
        return int(token["octal"], 8)
    if token["control"] is not None:
        return _ESCAPED[token["control"]]
    char = token["literal"] or token["char"]
    if token["literal"] == "C":
        raise _refused(r"The pattern holds \C, which has no meaning in text.")
    return ord(char)


def _literal(code: int) -> str:
    if code == 10:
        raise _refused("The pattern holds a line break, but is matched line by line; leave it out.")
    return spelled([(code, code)])


def _refused(message: str) -> DaemonError:
    return DaemonError(ErrorCode.INVALID_ARGUMENT, message, field="pattern")
