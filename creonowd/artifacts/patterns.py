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
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from creonowd.artifacts.charclasses import NEGATED, NOTHING, POSITIVE, posix, spelled
from creonowd.errors import DaemonError, ErrorCode

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
