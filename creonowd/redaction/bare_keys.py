"""Private keys without the lines around them that name one: parts of JSON web keys, hexadecimal lines, bytes, tails.

`formats` has blocks that begin with their name, `vendor_keys` what a prefix gives away.
"""

import re
from collections.abc import Iterator, Sequence

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule, first_group
from creonowd.redaction.split_points import KEY_NAME

LONGEST_WEB_KEY = 2400
MOST_LINES = 64
LONGEST_KEY_LINE = 96

_PRIVATE_PART = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{16,700})\"")
_HEX_LINE = re.compile(r"[ \t>|]{0,12}([0-9a-fA-F]{32,64})[ \t]{0,4}(?:\r?\n|\Z)")
_BASE64_LINE = re.compile(r"[ \t>|*+0-9:.]{0,12}?([A-Za-z0-9+/]{16,76}={0,2})[ \t|]{0,4}\r?\Z")


def _web_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the private parts of a JSON web key, which stand before or behind its type."""
    text, start = match.string, match.start()
    first = max(text.rfind("{", max(0, start - LONGEST_WEB_KEY), start), 0)
    last = text.find("}", start, start + LONGEST_WEB_KEY)
    last = last if last >= 0 else min(len(text), start + LONGEST_WEB_KEY)
    return [part.span(1) for part in _PRIVATE_PART.finditer(text, first, last)]


def _static_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the lines of hexadecimal digits in an element of a VPN's settings."""
    spans: list[MatchSpan] = []
    place = match.end()
    while len(spans) < MOST_LINES and (line := _HEX_LINE.match(match.string, place)):
        spans.append(line.span(1))
        place = line.end()
    return spans if len(spans) > 1 else NOTHING


def _tail(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the lines above the end of a block whose beginning is cut off."""
    return tuple(_lines_above(match.string, match.start()))


def _lines_above(text: str, end: int) -> Iterator[MatchSpan]:
    for _ in range(MOST_LINES):
        if not end or text[end - 1] != "\n":
            return
        start = text.rfind("\n", max(0, end - 1 - LONGEST_KEY_LINE), end - 1) + 1
        line = (
            _BASE64_LINE.match(text, start, end - 1) if start or end <= LONGEST_KEY_LINE else None
        )
        if line is None:
            return
        yield line.span(1)
        end = start


def _digits_of_network(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (
        (match.span(1),)
        if re.search("[0-9]", match[1]) and re.search("[a-fA-F]", match[1])
        else NOTHING
    )


RULES = (
    RedactionRule(
        "labelled_secret",
        ('"kty"',),
        r"\"kty\"",
        _web_key,
        bounded=False,
    ),
    RedactionRule(
        "private_key_pem",
        ("<tls-auth>", "<tls-crypt>", "<tls-crypt-v2>", "<secret>", "<static-key>"),
        r"<[a-z0-9-]{6,16}>[ \t]{0,4}\r?\n(?:[ \t]{0,4}#[^\n]{0,80}\n){0,6}",
        _static_key,
        bounded=False,
    ),
    RedactionRule(
        "private_key_pem",
        ("-----end ",),
        rf"-----END {KEY_NAME}-----",
        _tail,
        bounded=False,
    ),
    RedactionRule(
        "labelled_secret",
        (
            "keypair",
            "id.json",
            "secret key",
            "secretkey",
            "secret_key",
            "private key",
            "privatekey",
            "private_key",
        ),
        r"(?i)(?:keypair|id\.json|(?:secret|private)[ _]?key)[^\n\[]{0,40}\n?[^\n\[]{0,16}\[\s{0,8}((?:[0-9]{1,3},\s{0,8}){31,95}[0-9]{1,3})\s{0,8}\]",
        first_group,
        bounded=False,
    ),
    RedactionRule(
        "wifi_password",
        ("wep", "psk", "pmk"),
        r"(?i)(?:wep|psk|pmk)[^\n0-9a-f]{0,4}(?:[a-z_ -]{0,8}[0-3]?)?(?:[ ]?\([a-z0-9 ]{1,16}\))?[ \t:=\"']{1,8}([0-9a-f]{64}|[0-9a-f]{58}|[0-9a-f]{26})(?![0-9a-z])",
        _digits_of_network,
    ),
)
