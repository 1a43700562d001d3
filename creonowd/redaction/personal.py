"""Rules for one user's keys and home folder, and the wider rules of sensitive mode.

Sensitive mode also takes out what identifies a person, and any random string. It is off by
default, because it would damage prose.
"""

import json
import re
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from creonowd.redaction.absolute_paths import UNIX, WINDOWS, WINDOWS_ESCAPED, end_of_path
from creonowd.redaction.access_codes import is_card_number
from creonowd.redaction.rules import (
    NOTHING,
    MatchSpan,
    RedactionRule,
    begins_token,
    lower,
    normalise,
    whole,
)
from creonowd.redaction.shape import is_random

_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)

SHORTEST_SECRET = 4

_SEPARATOR = re.compile(r"(?:\\{1,4}|/)+(?=\S)")


def _identity_card(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Check the last digit of a mainland identity card."""
    digits = match[0]
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, digits[:17], strict=True))
    return (match.span(),) if "10X98765432"[total % 11] == digits[17].upper() else NOTHING


def _bank_card(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(),) if is_card_number(match[0]) else NOTHING


def _random_string(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(),) if is_random(match[0], 24) else NOTHING


RULES = (
    RedactionRule(
        "email_address",
        (),
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,24}){1,4}",
        whole,
    ),
    RedactionRule(
        "identity_card_cn",
        (),
        r"(?<![0-9A-Za-z])[1-9][0-9]{16}[0-9Xx](?![0-9A-Za-z])",
        _identity_card,
    ),
    RedactionRule(
        "bank_card_number",
        (),
        r"(?<![0-9A-Za-z-])[3-6][0-9]{3}(?:[ -]?[0-9]{4}){2,3}[ -]?[0-9]{1,4}(?![0-9A-Za-z-])",
        _bank_card,
    ),
    RedactionRule(
        "phone_number_cn",
        (),
        r"(?<![0-9A-Za-z])(?:\+?86[ -]?)?1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}(?![0-9A-Za-z])",
        whole,
    ),
    RedactionRule(
        "ipv4_address",
        (),
        r"(?<![0-9A-Za-z.])(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})(?![0-9A-Za-z]|\.[0-9])",
        whole,
    ),
    RedactionRule(
        "random_string", (), r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}", _random_string
    ),
)


def secret_rules(secrets: Sequence[str]) -> tuple[RedactionRule, ...]:
    """Write one rule for each configured key, as it is, escaped for JSON and quoted for a URL."""
    distinct = sorted(
        {secret.strip() for secret in secrets if len(secret.strip()) >= SHORTEST_SECRET}
    )
    return tuple(map(_secret_rule, distinct))


def _secret_rule(secret: str) -> RedactionRule:
    plain = normalise(secret).text
    quoted = {quote(secret, safe, errors="replace") for safe in ("", "/")}
    spellings = _longest_first({plain, json.dumps(plain, ensure_ascii=False)[1:-1]} | quoted)
    return RedactionRule(
        "configured_secret",
        tuple(map(lower, spellings)),
        "|".join(map(re.escape, spellings)),
        whole,
        bounded=False,
    )


def home_rules(home: PurePath | None) -> tuple[RedactionRule, ...]:
    """Write the rule for the home folder; a bare root is no home."""
    if home is None or not home.is_absolute() or home == home.parent:
        return ()
    spellings = _longest_first({normalise(spelling).text for spelling in _spellings(home)})
    return (
        RedactionRule(
            "home_abs_path",
            tuple(dict.fromkeys(map(lower, spellings))),
            "(?i)(?:" + "|".join(map(re.escape, spellings)) + r")(?![A-Za-z0-9_-])",
            _home,
            bounded=False,
        ),
    )


def _spellings(home: PurePath) -> set[str]:
    native, forward = str(home), home.as_posix()
    spellings = {native, forward, forward.replace("/", "\\/"), quote(forward, errors="replace")}
    spellings |= {native.replace("\\", "\\" * 2), native.replace("\\", "\\" * 4)}
    if home.drive.endswith(":"):
        drive, tail = home.drive[0].lower(), forward[2:]
        spellings |= {f"/{drive}{tail}", f"/mnt/{drive}{tail}", f"/cygdrive/{drive}{tail}"}
    return spellings


def _longest_first(spellings: set[str]) -> list[str]:
    return sorted(spellings, key=lambda spelling: (-len(spelling), spelling))


def _home(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, start, end = match.string, match.start(), match.end()
    before = text[start - 1] if start else "\n"
    if before in "._~-" or not begins_token(text, start):
        return NOTHING
    rest = _SEPARATOR.match(text, end)
    if rest is None:
        return ((start, end),)
    style = WINDOWS_ESCAPED if rest[0] == "\\\\" else WINDOWS if "\\" in rest[0] else UNIX
    return ((start, max(end, end_of_path(text, rest.end(), style, opened_by=before))),)
