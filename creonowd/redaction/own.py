"""What is secret for this user only: the home folder in every spelling, and configured keys.

Knows spellings; the rest of a path behind the home folder is found by `path_extent`.
"""

import json
import re
from collections.abc import Sequence
from pathlib import PurePath, PureWindowsPath
from urllib.parse import quote

from creonowd.redaction.path_extent import (
    LONGEST_LOOK_AHEAD,
    UNIX,
    WINDOWS,
    WINDOWS_ESCAPED,
    end_of_path,
)
from creonowd.redaction.rules import NOTHING, Rule, Span, whole

SHORTEST_SECRET = 4


def secret_rules(secrets: Sequence[str]) -> tuple[Rule, ...]:
    """Write one rule for each configured key, as it is, escaped for JSON and quoted for a URL."""
    known = sorted({secret.strip() for secret in secrets if len(secret.strip()) >= SHORTEST_SECRET})
    return tuple(_secret_rule(secret) for secret in known)


def _secret_rule(secret: str) -> Rule:
    spellings = {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    spellings |= {quote(secret, safe=""), quote(secret)}
    longest_first = sorted(spellings, key=lambda spelling: (-len(spelling), spelling))
    return Rule(
        "configured_secret",
        tuple(spelling.replace("İ", "I").lower() for spelling in longest_first),
        "|".join(map(re.escape, longest_first)),
        whole,
        bounded=False,
    )


def home_rules(home: PurePath | None) -> tuple[Rule, ...]:
    """Write the rule for the home folder; a bare root is nobody's home."""
    if home is None or not home.is_absolute() or home == home.parent:
        return ()
    spellings = sorted(_spellings(home), key=lambda spelling: (-len(spelling), spelling))
    return (
        Rule(
            "home_abs_path",
            tuple(dict.fromkeys(spelling.replace("İ", "I").lower() for spelling in spellings)),
            "(?i)(?:" + "|".join(map(re.escape, spellings)) + r")(?![A-Za-z0-9_-])",
            _home,
            bounded=False,
            looks_back=1,
            looks_ahead=LONGEST_LOOK_AHEAD,
        ),
    )


def _spellings(home: PurePath) -> set[str]:
    forward = home.as_posix()
    spellings = {str(home), forward, forward.replace("/", "\\/"), quote(forward)}
    if isinstance(home, PureWindowsPath):
        backward = str(home)
        tail = forward[2:]
        spellings |= {backward.replace("\\", "\\\\"), backward.replace("\\", "\\\\\\\\")}
        spellings |= {f"/{home.drive[0].lower()}{tail}", f"/mnt/{home.drive[0].lower()}{tail}"}
    return spellings


def _home(match: "re.Match[str]") -> Sequence[Span]:
    text, start, end = match.string, match.start(), match.end()
    before = text[start - 1 : start] if start else ""
    if before.isascii() and (before.isalnum() or before in "._~-") and before:
        return NOTHING
    rest = re.compile(r"(?:\\{1,4}|/)+(?=\S)").match(text, end)
    if rest is None:
        return ((start, end),)
    style = WINDOWS_ESCAPED if rest[0] == "\\\\" else WINDOWS if "\\" in rest[0] else UNIX
    return ((start, max(end, end_of_path(text, rest.end(), style, opened_by=before))),)
