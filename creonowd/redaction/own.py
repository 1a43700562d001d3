"""What is secret for this user only: the home folder in every spelling, and configured keys.

Knows spellings; the rest of a path behind the home folder is found by `path_extent`.
"""

import json
import re
from collections.abc import Sequence
from pathlib import PurePath
from urllib.parse import quote

from creonowd.redaction.boundary import begins
from creonowd.redaction.folding import fold
from creonowd.redaction.path_extent import (
    UNIX,
    WINDOWS,
    WINDOWS_ESCAPED,
    end_of_path,
)
from creonowd.redaction.rules import NOTHING, Rule, Span, whole
from creonowd.redaction.scanning import lower

SHORTEST_SECRET = 4

_SEPARATOR = re.compile(r"(?:\\{1,4}|/)+(?=\S)")


def secret_rules(secrets: Sequence[str]) -> tuple[Rule, ...]:
    """Write one rule for each configured key, as it is, escaped for JSON and quoted for a URL."""
    known = sorted({secret.strip() for secret in secrets if len(secret.strip()) >= SHORTEST_SECRET})
    return tuple(map(_secret_rule, known))


def _secret_rule(secret: str) -> Rule:
    plain = fold(secret).text
    quoted = {quote(secret, safe, errors="replace") for safe in ("", "/")}
    spellings = _longest_first({plain, json.dumps(plain, ensure_ascii=False)[1:-1]} | quoted)
    return Rule(
        "configured_secret",
        tuple(map(lower, spellings)),
        "|".join(map(re.escape, spellings)),
        whole,
        bounded=False,
    )


def home_rules(home: PurePath | None) -> tuple[Rule, ...]:
    """Write the rule for the home folder; a bare root is nobody's home."""
    if home is None or not home.is_absolute() or home == home.parent:
        return ()
    spellings = _longest_first({fold(spelling).text for spelling in _spellings(home)})
    return (
        Rule(
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


def _home(match: "re.Match[str]") -> Sequence[Span]:
    text, start, end = match.string, match.start(), match.end()
    before = text[start - 1] if start else "\n"
    if before in "._~-" or not begins(text, start):
        return NOTHING
    rest = _SEPARATOR.match(text, end)
    if rest is None:
        return ((start, end),)
    style = WINDOWS_ESCAPED if rest[0] == "\\\\" else WINDOWS if "\\" in rest[0] else UNIX
    return ((start, max(end, end_of_path(text, rest.end(), style, opened_by=before))),)
