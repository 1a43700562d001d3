"""Secrets of HTTP headers: `Authorization`, `Bearer`, signatures and session cookies.

Headers are found as they are pasted into notes, code and logs; `labels` finds other named values.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule, first_group
from creonowd.redaction.shape import has_mixture, is_random, is_secret, is_stand_in, is_words

_QUOTE = r"[\"'\\]{0,4}+"
_CREDENTIAL = r"([A-Za-z0-9+/=_.~:-]{8,4096}+)"
_COOKIE = re.compile(r"\s*([^=;\s]{1,64})=([^;\s\"'\\，。]{8,4096})")
_SESSION_NAME = re.compile(
    r"sess|sid\b|auth|token|jwt|remember|log(?:ged_)?in|csrf|xsrf|passport|ticket|bduss|z_c0|secret"
    r"|credential|[._-]sid",
    re.IGNORECASE,
)


def _authorization(match: "re.Match[str]") -> Sequence[MatchSpan]:
    value = match[1].rstrip(".:")
    if is_stand_in(value) or not (is_secret(value) or is_random(value, 12)):
        return NOTHING
    return ((match.start(1), match.start(1) + len(value)),)


def _bearer(match: "re.Match[str]") -> Sequence[MatchSpan]:
    value = match[1].rstrip(".:")
    if len(value) < 10 or is_words(value) or not is_secret(value):
        return NOTHING
    return ((match.start(1), match.start(1) + len(value)),)


def _basic(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what decodes to `user:password`."""
    try:
        decoded = base64.b64decode(match[1], validate=True)
    except binascii.Error:
        return NOTHING
    return (match.span(1),) if b":" in decoded and decoded.isascii() else NOTHING


def _cookies(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return tuple(_session_values(match))


def _session_values(match: "re.Match[str]") -> Iterator[MatchSpan]:
    place = match.start(1)
    for pair in match[1].split(";"):
        cookie = _COOKIE.match(pair)
        if cookie and _is_session(cookie[1], cookie[2]):
            yield place + cookie.start(2), place + cookie.end(2)
        place += len(pair) + 1


def _is_session(name: str, value: str) -> bool:
    if is_stand_in(value):
        return False
    if _SESSION_NAME.search(name):
        return has_mixture(value) and not is_words(value)
    return is_random(value, 20)


def _named_session(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if is_random(match[1], 16) else NOTHING


RULES = (
    RedactionRule(
        "authorization_header",
        ("authorization",),
        rf"(?i)authorization{_QUOTE}[ \t]{{0,4}}[:=：,][ \t]{{0,4}}{_QUOTE}"
        rf"(?:(?:bearer|basic|token|apikey|api-key|key|negotiate|ntlm|oauth|jwt)[ \t]+)?{_CREDENTIAL}",
        _authorization,
        bounded=False,
    ),
    RedactionRule(
        "bearer_token",
        ("bearer",),
        rf"(?i)bearer{_QUOTE}[ \t:=：]{{1,4}}{_QUOTE}{_CREDENTIAL}",
        _bearer,
    ),
    RedactionRule(
        "basic_credentials",
        ("basic ",),
        r"(?i)basic[ ]{1,2}([A-Za-z0-9+/]{12,512}+={0,2})",
        _basic,
    ),
    RedactionRule(
        "request_signature",
        ("signature=", "signature%3d"),
        r"(?i)signature(?:=|%3d)[\"']?([A-Za-z0-9+/=_%-]{40,512}+)",
        first_group,
        bounded=False,
    ),
    RedactionRule(
        "session_cookie",
        ("cookie",),
        r"(?i)cookies?[\"'\\]{0,4}+[ \t]{0,4}[:=][ \t]{0,4}[\"'\\]{0,4}+([^\r\n\"'\\]{8,4096}+)",
        _cookies,
        bounded=False,
    ),
    RedactionRule(
        "session_cookie",
        ("sessid=", "sessionid=", "connect.sid=", "session=", "sessdata=", "bduss="),
        r"(?i)[a-z.]{4,12}=([A-Za-z0-9%+/_.:~-]{16,1024}+)",
        _named_session,
        bounded=False,
    ),
)
