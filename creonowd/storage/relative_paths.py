"""Check which project-relative paths a client may name, by their text alone.

A path that passes here may still lead elsewhere through a link; `safe_folder` checks that.
"""

import re
import unicodedata
from functools import lru_cache

from creonowd.errors import DaemonError, ErrorCode

MAX_LENGTH = 1024

_RESERVED = re.compile(
    r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|(?:com|lpt)[0-9¹²³])\s*(?:\..*)?", re.IGNORECASE
)
_SLASHES = frozenset("/\\")
_LIKE_A_SLASH = frozenset("∕⁄⧸⧹╱╲⟋⟍")
_DROPPED_BY_WINDOWS = ". ．․"


def problem_with(path: str) -> str | None:
    """Name what makes a project-relative path unsafe on any system; None if nothing does."""
    if not path or len(path) > MAX_LENGTH:
        return "length"
    problems = (problem_with_name(name) for name in path.split("/"))
    return next((problem for problem in problems if problem), None)


@lru_cache(maxsize=8192)
def problem_with_name(name: str) -> str | None:
    """Name what makes one file or folder name unsafe; None if nothing does."""
    if any(unicodedata.category(character) in {"Cc", "Cs"} for character in name):
        return "control_character"
    # Some disks ignore characters that nobody sees.
    visible = "".join(c for c in name if unicodedata.category(c) != "Cf")
    plain = unicodedata.normalize("NFKC", visible)
    if not plain or not plain.strip(" ."):
        return "relative_step"
    if _SLASHES & set(plain) or _LIKE_A_SLASH & set(name):
        return "separator"
    if ":" in name:
        return "drive_or_stream"
    if visible[-1] in _DROPPED_BY_WINDOWS:
        return "trailing_dot_or_space"
    return "reserved_name" if _RESERVED.fullmatch(plain) else None


def invalid_path(reason: str, message: str | None = None) -> DaemonError:
    """Report that a path is not allowed, without repeating it."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        message or "path must be a plain project-relative path with / between its names.",
        field="path",
        reason=reason,
    )
