"""Absolute paths: Windows, Unix, macOS, network shares, WSL and `file://`, plain or JSON-escaped.

Knows where a path begins; where it ends is decided in `path_extent`. Relative paths, URLs,
routes, formulas and `C:` in a dialogue are none of its business.
"""

import re
import string
from collections.abc import Iterable, Sequence

from creonowd.redaction.boundary import begins, follows_escape
from creonowd.redaction.formulas import LINE_ESCAPE, NO_FOLDER, NO_HOST
from creonowd.redaction.path_extent import (
    QUOTES,
    UNIX,
    WINDOWS,
    WINDOWS_ESCAPED,
    WINDOWS_TWICE_ESCAPED,
    end_of_path,
    end_of_url,
)
from creonowd.redaction.rules import NOTHING, Rule, Span

LONGEST_HEAD = 96
LONGEST_SCHEME = 8
LONGEST_LINK = 16

_PEOPLE = ("home", "Users", "root")
_ROOTS = (*_PEOPLE, "var", "tmp", "opt", "srv", "mnt", "etc", "private", "Volumes")
_DEEP_ROOTS = (
    "media", "data", "export/home", "run/user", "storage/emulated", "usr/local", "usr/home",
    "Library", "Applications", "System",
)  # fmt: skip
_WITHIN_A_PATH = frozenset(string.ascii_letters + string.digits + "._~-%$}@")
_PERSONAL = re.compile(
    rf"\\?/(?:(?:(?:mnt\\?/|cygdrive\\?/|)[a-zA-Z]\\?/)?(?:{'|'.join(_PEOPLE)})|run\\?/user)\\?/"
)
_MAY_LEAD_TO_A_PATH = "在到开入进径从往向见看为是至把将自于与和或了，。；：、！？“‘「『《【（…—　"
_LEADS_TO_ROOT = re.compile(r"(?:(?<!\S)-[A-Za-z]?|:(?://|\\/\\/)file)\Z")
_REQUEST = re.compile(
    r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|(?:ROUTE|[Rr]oute|路由)[:：]?)[ \t]?\Z"
)
_ADDRESS = re.compile(r"https?://[!-~]*\Z")
_ENDS_A_REQUEST = frozenset("TEHDSe由:：")
_ENDS_IN_SCHEME = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z]|https?|ftp|file):\Z")
_QUOTES = frozenset("'\"`")
_LINK = re.compile(
    r"(?:href|action)=[\"']\Z|(?<!\w)to=[{]?[\"']\Z"
    r"|\.(?:push|replace|navigate|redirect|get|post|put|delete|use|goto)\([\"'`]\Z"
)
_NO_STAND_IN = r"(?!(?:Users[\\/]{1,4}|)(?:%\w{1,32}%|\$|\.{2,8}(?!\w)))"
_LINE_BREAK = re.compile(LINE_ESCAPE)
_STYLES = {0: WINDOWS, 1: WINDOWS, 2: WINDOWS_ESCAPED, 4: WINDOWS_TWICE_ESCAPED}


def _windows(match: "re.Match[str]") -> Sequence[Span]:
    text, (start, after) = match.string, match.span()
    slashes = 0 if text[after - 1] == "/" else after - start - len("C:")
    end = end_of_path(text, after, _STYLES[slashes], opened_by=text[start - 1 : start])
    nobody = text[after:end].rstrip("\\/") in ("", "Users")
    return NOTHING if nobody or (slashes == 0 and end - after < 2) else ((start, end),)


def _network(match: "re.Match[str]") -> Sequence[Span]:
    text, start, share = match.string, match.start(), match.start("share")
    lead, gap = match.group("lead", "gap")
    if len(lead) != 2 * len(gap) or not _begins_network(text, start):
        return NOTHING
    if len(lead) == 2 and _LINE_BREAK.match(text, share):
        return NOTHING
    end = end_of_path(text, share, _STYLES[len(gap)], opened_by=text[start - 1 : start])
    return ((start, end),) if end > share else NOTHING


def _begins_network(text: str, start: int) -> bool:
    r"""Tell a server's first backslashes from those inside `C:\\Users` or `https:\\`."""
    if not start or text[start - 1] != ":":
        return begins(text, start) and text[start - 1 : start] != "\\"
    return _ENDS_IN_SCHEME.search(text, max(0, start - LONGEST_SCHEME), start) is None


def _unix(match: "re.Match[str]") -> Sequence[Span]:
    text, (start, after) = match.string, match.span()
    if not _is_root(text, start):
        return NOTHING
    end = end_of_path(text, after, UNIX, opened_by=text[start - 1 : start])
    return ((start, end),) if end > after else NOTHING


def _is_root(text: str, start: int) -> bool:
    """Tell a path's first slash from one inside a relative path, a URL or a request line."""
    before = text[start - 1] if start else "\n"
    if before == " ":
        return text[start - 2] not in _ENDS_A_REQUEST or (
            _REQUEST.search(text, max(0, start - 10), start) is None
        )
    if before in "/\\":
        head = text[max(0, start - 8) : start]
        bare = head.rstrip("/\\")
        last = bare[-1:]
        return last not in _WITHIN_A_PATH and not (last == ":" and len(head) - len(bare) == 1)
    if not before.isascii():
        return _PERSONAL.match(text, start) is not None or before in _MAY_LEAD_TO_A_PATH
    if before not in _WITHIN_A_PATH:
        return (before != "*" or begins(text, start)) and not _is_route(text, start, before)
    return (
        follows_escape(text, start)
        or _LEADS_TO_ROOT.search(text, max(0, start - 10), start) is not None
    )


def _is_route(text: str, start: int, before: str) -> bool:
    """Recognise the rest of a web address, and what a page links to."""
    first = max(0, start - LONGEST_HEAD)
    linked = before in _QUOTES and text[start - 2] in "=({" and text.startswith("/home", start)
    if linked and _LINK.search(text, max(0, start - LONGEST_LINK), start):
        return True
    return text.find("://", first, start) >= 0 and _ADDRESS.search(text, first, start) is not None


def _file_url(match: "re.Match[str]") -> Sequence[Span]:
    text, (start, after) = match.string, match.span()
    before = text[start - 1 : start]
    quoted = before in QUOTES
    end = end_of_path(text, after, UNIX, opened_by=before) if quoted else end_of_url(text, after)
    return ((start, end),) if end > after else NOTHING


def _escaped_too(anchors: Iterable[str]) -> tuple[str, ...]:
    plain = tuple(anchors)
    return plain + tuple(anchor.replace("/", "\\/") for anchor in plain)


RULES = (
    Rule(
        "file_url_abs_path",
        ("file:/", "file:\\/"),
        r"(?i)file:(?:(?:\\?/){3}|(?:\\?/){2}(?=[^\s\\/*]{1,128}\\?/)|\\?/)"
        r"(?:[A-Za-z](?::|%3A|\|)\\?/)?(?=[^\s\\/])",
        _file_url,
    ),
    Rule(
        "unc_abs_path",
        ("\\\\",),
        rf"(?P<lead>\\{{8}}|\\{{4}}|\\{{2}})(?P<host>(?![.?]\\|{NO_HOST})"
        r"[^\s\\/:*?\"'<>|,;，。；：、（）(){}\[\]]{2,64}+)"
        r"(?P<gap>\\{4}|\\{1,2})(?P<share>[^\s\\/:*?\"'<>|{}]{1,8})",
        _network,
        bounded=False,
    ),
    Rule(
        "windows_abs_path",
        tuple(f"{drive}:{slash}" for drive in string.ascii_lowercase for slash in "\\/"),
        rf"[A-Za-z]:(?:\\?/|\\{{4}}|\\\\(?!{LINE_ESCAPE}(?!\\))|\\(?!\\|(?<=[QAqa]:\\)n|{NO_FOLDER}))"
        rf"(?![\\/]){_NO_STAND_IN}",
        _windows,
    ),
    Rule(
        "unix_abs_path",
        _escaped_too(f"/{root.lower()}/" for root in _ROOTS),
        rf"\\?/(?:(?:{'|'.join(_ROOTS)})\\?/)++{_NO_STAND_IN}",
        _unix,
        bounded=False,
    ),
    Rule(
        "unix_abs_path",
        _escaped_too(f"/{root.lower()}/" for root in _DEEP_ROOTS),
        rf"/(?:{'|'.join(_DEEP_ROOTS)})/".replace("/", r"\\?/")
        + rf"(?=[^\n\\/:*?\"<>|，。；]{{1,128}}\\?/){_NO_STAND_IN}",
        _unix,
        bounded=False,
    ),
    Rule(
        "unix_abs_path",
        _escaped_too(("/cygdrive/", *(f"/{drive}/users/" for drive in "cdefgh"))),
        rf"\\?/(?:cygdrive\\?/[a-zA-Z]|[c-hC-H]\\?/Users)\\?/{_NO_STAND_IN}",
        _unix,
        bounded=False,
    ),
)
