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
_COOKIE = re.compile(r"(?<![^;\s:=\"'\\])[ \t]*([^=;\s\"']{1,64})=([^;\s\"'\\，。]{8,4096})")
_REST_OF_COOKIE = re.compile(r"[^;\s\"'\\，。]*+")
_MORE_COOKIES = re.compile(r"[^\r\n\"'\\]{1,4096}+")
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
    """Yield the values of session cookies, of a long header part by part.

    It is read on only while there are any, so that no part is read twice.
    """
    text, (place, end) = match.string, match.span(1)
    while place < end:
        last = place
        for cookie in _COOKIE.finditer(text, place, end):
            if _is_session(cookie[1], cookie[2]):
                last = _end_of_cookie(text, cookie.end(2))
                yield cookie.start(2), last
        more = _MORE_COOKIES.match(text, max(last, end)) if last > place else None
        place, end = (end, end) if more is None else (max(last, end), more.end())


def _end_of_cookie(text: str, end: int) -> int:
    rest = _REST_OF_COOKIE.match(text, end)
    return end if rest is None else rest.end()


def _is_session(name: str, value: str) -> bool:
    if is_stand_in(value):
        return False
    if _SESSION_NAME.search(name):
        return has_mixture(value) and not is_words(value)
    return is_random(value, 20)


def _named_session(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if is_random(match[1], 16) else NOTHING


def _named_cookie(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of `{"name": "sid", "value": "…"}`, as archives of HTTP have cookies."""
    return (match.span(2),) if _is_session(match[1], match[2]) else NOTHING


RULES = (
    RedactionRule(
        "basic_credentials",
        ('"auth"',),
        r"\"auth\"[ \t]{0,4}:[ \t]{0,4}\"([A-Za-z0-9+/]{8,512}+={0,2})\"",
        _basic,
        bounded=False,
    ),
    RedactionRule(
        "authorization_header",
        ("authorization: digest", 'authorization": "digest'),
        r"(?i)authorization[\"']?:[ \t]{0,4}[\"']?digest[ \t][^\r\n]{0,512}?response=\\?\"([0-9a-fA-F]{16,128})",
        first_group,
        bounded=False,
    ),
    RedactionRule(
        "session_cookie",
        ('"name"',),
        r"\"name\"[ \t]{0,4}:\s{0,4}\"([^\"\s]{2,64})\"\s{0,4},\s{0,32}\"value\"[ \t]{0,4}:\s{0,4}\"([^\"\s]{8,4096}+)",
        _named_cookie,
        bounded=False,
        swallows=False,
    ),
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
        r"(?i)cookies?[\"'\\]{0,4}+[ \t]{0,4}(?:,\s{0,32}[\"'\\]{0,4}value[\"'\\]{0,4}[ \t]{0,4})?[:=][ \t]{0,4}[\"'\\]{0,4}+([^\r\n\"'\\]{8,4096}+)",
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
