"""Secrets in formats of their own: JSON web tokens, private keys, credentials in URLs."""

import re
import sys
from collections.abc import Sequence

from creonowd.redaction.rules import NOTHING, WORD, MatchSpan, RedactionRule, first_group, whole
from creonowd.redaction.shape import is_random, is_stand_in

LONGEST_KEY = 65_536

_DASHES = "(?:-{4,5}|[–—]{1,5})"
_KEY_NAME = "[A-Z0-9 ]{0,24}PRIVATE KEY(?: BLOCK)?"
# Any six characters before it will do, so that a disguised dash does not hide a key.
_KEY_BEGIN = re.compile(rf"-{{4,5}} ?BEGIN {_KEY_NAME}".encode())
_KEY_END = re.compile(rf"-{{4,5}} ?END {_KEY_NAME} ?-{{4,5}}[^-]".encode())
_KEY_LINE = re.compile(rf".{{0,6}}(BEGIN|END) {_KEY_NAME}[ –—-]{{0,6}}")
_KEY_LINES = r"(?:\s|\\+[nrt]|[\"'+,>|*]|[A-Za-z-]{3,20}: [^\n\\]{0,120})*+"
_KEY_BODY = re.compile(
    rf"(?:{_KEY_LINES}[A-Za-z0-9+/=]{{16,}}+)+{_KEY_LINES}(?:[A-Za-z0-9+/]{{0,15}}=*)"
)
_LONG_RUN = re.compile(r"[A-Za-z0-9+/]{20}")
_WORDS_FOR_PASSWORD = ("password", "passwd", "pass", "pwd", "passwort", "密码")


def private_keys(text: str, start: int = 0, end: int = sys.maxsize) -> list[MatchSpan]:
    """List from where to where the private keys between two positions reach, PEM lines included.

    A key without an end reaches as far as the longest key would.
    """
    keys: list[MatchSpan] = []
    if text.find("PRIVATE KEY", start, end) < 0:
        return keys
    for line in _KEY_LINE.finditer(text, start, end):
        if line[1] == "BEGIN":
            keys.append((line.start(), line.start() + LONGEST_KEY))
        elif keys:
            first, last = keys[-1]
            keys[-1] = first, min(last, line.end())
    return keys


def open_private_key(data: bytes) -> int | None:
    """Return where the private key begins that the end of `data` lies in; None if in no key."""
    if b"PRIVATE KEY" not in data:
        return None
    begins = [match.start() for match in _KEY_BEGIN.finditer(data)]
    if not begins or _KEY_END.search(data, begins[-1]) is not None:
        return None
    return begins[-1]


def _private_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the whole block; without an end, whatever still looks like a key."""
    if match["end"]:
        return (match.span(),) if _LONG_RUN.search(match["body"]) else NOTHING
    body = _KEY_BODY.match(match["body"])
    if body is None:
        return NOTHING
    return ((match.start(), match.start("body") + len(body[0].rstrip())),)


def _url_password(match: "re.Match[str]") -> Sequence[MatchSpan]:
    password = match["password"]
    if password is None:
        return (match.span("user"),) if is_random(match["user"], 16) else NOTHING
    if is_stand_in(password) or password.lower() in _WORDS_FOR_PASSWORD:
        return NOTHING
    return (match.span("password"),)


def _dsn_password(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `@tcp(` for the `user:password` of a data source name in Go."""
    before = match.string[max(0, match.start() - 160) : match.start()]
    pair = re.search(r"(?<![^\s\"'`=])[\w.-]{1,64}:([^\s:\"'`]{1,90})\Z", before)
    if pair is None or is_stand_in(pair[1]):
        return NOTHING
    return ((match.start() - len(pair[1]), match.start()),)


RULES = (
    RedactionRule(
        "json_web_token",
        ("eyj",),
        rf"(?<!{WORD}[-_])eyJ{WORD}{{8,}}+\.{WORD}{{8,}}+(?:(?:\.{{1,2}}{WORD}++){{1,4}}|\.?)",
        whole,
    ),
    RedactionRule(
        "private_key_pem",
        ("-----begin ", "---- begin ", "–begin ", "—begin "),
        rf"{_DASHES}[ ]?BEGIN {_KEY_NAME}[ ]?{_DASHES}"
        r"(?P<body>[^-–—]*+(?:-(?!---)[^-–—]*+)*+)"
        rf"(?P<end>{_DASHES}[ ]?END {_KEY_NAME}[ ]?{_DASHES})?",
        _private_key,
        bounded=False,
    ),
    RedactionRule(
        "private_key_putty",
        ("private-lines:",),
        r"Private-Lines: \d{1,3}((?:\s{1,3}[A-Za-z0-9+/=]{16,80}+)+)",
        first_group,
    ),
    RedactionRule(
        "url_credentials",
        ("://", ":\\/\\/"),
        r":(?://|\\/\\/)(?P<user>[^\s/?#@:\"'<>\\`|，。；（）]{0,128}+)"
        r"(?::(?P<password>[!#-&(-.0-;=?-\[\]-~]{1,256}))?@(?=[A-Za-z0-9\[_%$])",
        _url_password,
        bounded=False,
        needs="@",
    ),
    RedactionRule(
        "url_credentials",
        ("@tcp(", "@unix("),
        r"@(?:tcp|unix)\(",
        _dsn_password,
        bounded=False,
    ),
)
