"""Absolute paths: Windows, Unix, macOS, network shares, WSL and `file://`, plain or JSON-escaped.

Knows where a path begins; where it ends is decided in `path_extent`. Relative paths, URLs,
routes, formulas and `C:` in a dialogue are none of its business.
"""

import re
import string
from collections.abc import Iterable, Sequence

from creonowd.redaction.boundary import begins, follows_escape
from creonowd.redaction.path_extent import (
    LONGEST_LOOK_AHEAD,
    UNIX,
    WINDOWS,
    WINDOWS_ESCAPED,
    WINDOWS_TWICE_ESCAPED,
    Style,
    end_of_path,
)
from creonowd.redaction.rules import NOTHING, Rule, Span

LONGEST_HEAD = 96

_PEOPLE = ("home", "Users", "root")
_ROOTS = (*_PEOPLE, "var", "tmp", "opt", "srv", "mnt", "etc", "private", "Volumes")
_DEEP_ROOTS = (
    "media", "data", "export/home", "run/user", "storage/emulated", "usr/local", "usr/home",
    "Library", "Applications", "System",
)  # fmt: skip
_WITHIN_A_PATH = tuple(string.ascii_letters + string.digits + "._~-%$}@")
_PERSONAL = re.compile(rf"\\?/(?:{'|'.join(_PEOPLE)})\\?/")
_MAY_LEAD_TO_A_PATH = "在到从往向见看为是至把将自于与和或了，。；：、！？“‘「『《【（…—　"
_LEADS_TO_ROOT = re.compile(r"(?:(?<!\S)-[A-Za-z]?|:(?://|\\/\\/)file)\Z")
_REQUEST = re.compile(
    r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|(?:ROUTE|[Rr]oute|路由)[:：]?)[ \t]?\Z"
)
_ADDRESS = re.compile(r"https?://[!-~]*\Z")
_LINK = re.compile(
    r"(?:href|action)=[\"']\Z|\bto=[{]?[\"']\Z"
    r"|\.(?:push|replace|navigate|redirect|get|post|put|delete|use|goto)\([\"'`]\Z"
)
_FORMULA = re.compile(
    r"(?:math[a-z]{2,4}|text[a-z]{0,2}|frac|sqrt|sum|int|prod|lim|to|in|mapsto|times|cdot|l?dots|cdots|"
    r"alpha|beta|gamma|delta|epsilon|theta|lambda|mu|pi|rho|sigma|phi|psi|omega|infty|forall|exists|"
    r"(?:long)?(?:left|right)arrow|Rightarrow|Leftarrow|quad|qquad|left|right|begin|end|item|hline|"
    r"hspace|vspace|label|ref|cite|emph|R|N|Z|Q|C|partial|nabla|leq?|geq?|neq?|sin|cos|tan|log|ln|"
    r"vec|hat|bar|tilde|overline|underline|operatorname)(?![A-Za-z])|[A-Za-z]+(?:[{^]|_\{|_[0-9a-z](?![A-Za-z0-9]))"
)
_LINE_ESCAPE = re.compile(r"[nrt](?![a-z0-9_-])")
_ESCAPES = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[0-7]{3}")
_STAND_IN = re.compile(r"(?:Users[\\/]{1,4})?(?:%\w{1,32}%|\$|\.{2,8}(?!\w))")
_NOBODY = re.compile(r"(?:Users)?[\\/]*\Z")


def _windows(match: "re.Match[str]") -> Sequence[Span]:
    text, start, after = match.string, match.start(), match.end()
    slashes = 0 if match[1].endswith("/") else len(match[1])
    rest = text[after : after + 64]
    if _STAND_IN.match(rest) or _is_no_folder(text[start], rest, slashes):
        return NOTHING
    end = end_of_path(text, after, _windows_style(slashes), opened_by=_quote_before(text, start))
    nobody = _NOBODY.match(text, after, end) or (slashes == 0 and end - after < 2)
    return NOTHING if nobody else ((start, end),)


def _is_no_folder(drive: str, rest: str, slashes: int) -> bool:
    r"""Recognise a formula or a line break: `f:\mathbb{R}`, `Q:\nWho are you?`."""
    if slashes != 1:
        return slashes == 2 and rest[1:2] != "\\" and _LINE_ESCAPE.match(rest) is not None
    if _FORMULA.match(rest) or _LINE_ESCAPE.match(rest):
        return True
    return drive in "QAqa" and rest.startswith("n")


def _windows_style(slashes: int) -> Style:
    return {2: WINDOWS_ESCAPED, 4: WINDOWS_TWICE_ESCAPED}.get(slashes, WINDOWS)


def _quote_before(text: str, start: int) -> str:
    return text[start - 1 : start] if start else ""


def _network(match: "re.Match[str]") -> Sequence[Span]:
    text, start = match.string, match.start()
    host, share = match["host"], match["share"]
    if (start and text[start - 1] in "\\:") or not begins(text, start):
        return NOTHING
    if len(match["lead"]) != 2 * len(match["gap"]) or _FORMULA.match(host) or _ESCAPES.match(host):
        return NOTHING
    if len(match["lead"]) == 2 and _LINE_ESCAPE.match(share):
        return NOTHING
    style = _windows_style(len(match["gap"]))
    end = end_of_path(text, match.start("share"), style, opened_by=_quote_before(text, start))
    return ((start, end),) if end > match.start("share") else NOTHING


def _unix(match: "re.Match[str]") -> Sequence[Span]:
    text, start = match.string, match.start()
    if not _is_root(text, start) or _STAND_IN.match(text, match.end()):
        return NOTHING
    end = end_of_path(text, match.end(), UNIX, opened_by=_quote_before(text, start))
    return ((start, end),) if end > match.end() else NOTHING


def _is_root(text: str, start: int) -> bool:
    """Tell a path's first slash from one inside a relative path, a URL or a request line."""
    before = text[start - 1] if start else "\n"
    if before == " ":
        return _REQUEST.search(text, max(0, start - 10), start) is None
    if before in "/\\":
        head = text[max(0, start - 8) : start]
        bare = head.rstrip("/\\")
        return not bare.endswith(_WITHIN_A_PATH) and not (
            bare.endswith(":") and len(head) - len(bare) == 1
        )
    if not before.isascii():
        return _PERSONAL.match(text, start) is not None or before in _MAY_LEAD_TO_A_PATH
    if before not in _WITHIN_A_PATH:
        return begins(text, start) and not _is_route(text, start)
    return (
        follows_escape(text, start)
        or _LEADS_TO_ROOT.search(text, max(0, start - 10), start) is not None
    )


def _is_route(text: str, start: int) -> bool:
    """Recognise the rest of a web address, and what a page links to."""
    head = text[max(0, start - LONGEST_HEAD) : start]
    linked = text.startswith("/home", start) and _LINK.search(head) is not None
    return linked or _ADDRESS.search(head) is not None


def _file_url(match: "re.Match[str]") -> Sequence[Span]:
    text, start = match.string, match.start()
    end = end_of_path(text, match.end(), UNIX, opened_by=_quote_before(text, start))
    return ((start, end),) if end > match.end() else NOTHING


def _escaped_too(anchors: Iterable[str]) -> tuple[str, ...]:
    plain = tuple(anchors)
    return plain + tuple(anchor.replace("/", "\\/") for anchor in plain)


RULES = (
    Rule(
        "file_url_abs_path",
        ("file:/", "file:\\/"),
        r"(?i)file:(?:(?:\\?/){3}|(?:\\?/){2}(?=[^\s\\/]{1,128}\\?/)|\\?/)"
        r"(?:[A-Za-z](?::|%3A|\|)\\?/)?(?=[^\s\\/])",
        _file_url,
        looks_back=1,
        looks_ahead=LONGEST_LOOK_AHEAD,
    ),
    Rule(
        "unc_abs_path",
        ("\\\\",),
        r"(?P<lead>\\{4}|\\{2})(?P<host>(?![.?]\\)[^\s\\/:*?\"'<>|,;，。；：、（）(){}\[\]]{2,64}+)"
        r"(?P<gap>\\{1,2})(?P<share>[^\s\\/:*?\"'<>|{}]{1,8})",
        _network,
        bounded=False,
        looks_back=LONGEST_HEAD,
        looks_ahead=LONGEST_LOOK_AHEAD,
    ),
    Rule(
        "windows_abs_path",
        tuple(f"{drive}:{slash}" for drive in string.ascii_lowercase for slash in "\\/"),
        r"[A-Za-z]:(\\?/|\\{4}|\\{1,2})(?![\\/])",
        _windows,
        looks_back=1,
        looks_ahead=LONGEST_LOOK_AHEAD,
    ),
    Rule(
        "unix_abs_path",
        _escaped_too(f"/{root.lower()}/" for root in _ROOTS),
        rf"\\?/(?:(?:{'|'.join(_ROOTS)})\\?/)+",
        _unix,
        bounded=False,
        looks_back=LONGEST_HEAD,
        looks_ahead=LONGEST_LOOK_AHEAD,
    ),
    Rule(
        "unix_abs_path",
        _escaped_too(f"/{root.lower()}/" for root in _DEEP_ROOTS),
        rf"/(?:{'|'.join(_DEEP_ROOTS)})/".replace("/", r"\\?/") + r"(?=[^\n\\/]{1,128}\\?/)",
        _unix,
        bounded=False,
        looks_back=LONGEST_HEAD,
        looks_ahead=LONGEST_LOOK_AHEAD,
    ),
    Rule(
        "unix_abs_path",
        _escaped_too(("/cygdrive/", *(f"/{drive}/users/" for drive in "cdefgh"))),
        r"\\?/(?:cygdrive\\?/[a-zA-Z]|[c-hC-H]\\?/Users)\\?/",
        _unix,
        bounded=False,
        looks_back=LONGEST_HEAD,
        looks_ahead=LONGEST_LOOK_AHEAD,
    ),
)
