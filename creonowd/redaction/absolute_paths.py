"""Absolute paths of Windows, Unix, networks and file URLs: where one begins, and where it ends.

A path may go on beyond a space and seldom goes on to the end of its line; the second half of the
module finds out.
"""

import re
import string
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby
from operator import itemgetter

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule, begins_token, follows_escape
from creonowd.redaction.shape import word_set

LONGEST_HEAD = 96
LONGEST_SCHEME = 8
LONGEST_LINK = 16

_HOMES = ("home", "Users", "root")
_ROOTS = (*_HOMES, "var", "tmp", "opt", "srv", "mnt", "etc", "private", "Volumes")
_DEEP_ROOTS = (
    "media", "data", "export/home", "run/user", "storage/emulated", "usr/local", "usr/home",
    "Library", "Applications", "System",
)  # fmt: skip
_PATH_CHARS = frozenset(string.ascii_letters + string.digits + "._~-%$}@")
_PERSONAL = re.compile(
    rf"\\?/(?:(?:(?:mnt\\?/|cygdrive\\?/|)[a-zA-Z]\\?/)?(?:{'|'.join(_HOMES)})|run\\?/user)\\?/(?!users?/)(?=[A-Za-z0-9._-]{{1,64}}\\?/)"
)
"""A folder of a person; behind an ideograph only this is a path, as `卷一/home/归来.txt` is none."""
_BEFORE_ROOT = "在到开入进径从往向见看为是至把将自于与和或了，。；：、！？“‘「『《【（…—　"
_ENDS_OF_TITLES = "卷章节篇部集册回幕一二三四五六七八九十"
_FLAG_OR_FILE_URL = re.compile(r"(?:(?<!\S)-[A-Za-z]?|:(?://|\\/\\/)file)\Z")
_REQUEST = re.compile(
    r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|(?:ROUTE|[Rr]oute|路由)[:：]?)[ \t]?\Z"
)
_ADDRESS = re.compile(r"https?://[!-~]*\Z")
_REQUEST_ENDS = frozenset("TEHDSe由:：")
_SCHEME = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z]|https?|ftp|file):\Z")
_LINK_QUOTES = frozenset("'\"`")
_LINK = re.compile(
    r"(?:href|action)=[\"']\Z|(?<!\w)to=[{]?[\"']\Z"
    r"|\.(?:push|replace|navigate|redirect|get|post|put|delete|use|goto)\([\"'`]\Z"
)
_NO_STAND_IN = r"(?!(?:Users[\\/]{1,4}|)(?:%\w{1,32}%|\$|\.{2,8}(?!\w)))"
_LINE_ESCAPE = r"[nrt](?![a-z0-9_-])"
_LINE_BREAK = re.compile(_LINE_ESCAPE)

_CLOSING_QUOTES = dict(zip("\"'`“‘「『《<", "\"'`”’」』》>", strict=True))
"""What closes a quotation, by what opens it."""

LONGEST_QUOTATION = 240
MOST_WORDS = 8

_CHAR = r"[^\s\\/:*?\"'<>|`，。；：！？、“”‘’「」『』《》【】〈〉（）…,;(){}\[\]\x00-\x1f\x7f]"
_RARE_CHAR = (
    rf"(?:[,;](?={_CHAR}{{1,64}}[\\/])|(?<=[A-Za-z])'(?=[A-Za-z]{{1,16}}[\\/])"
    r"|\([^()\s\\/\"']{1,24}\)|（[^（）\s\\/]{1,24}）|\[[^\[\]\s\\/\"']{1,24}\])"
)
_WORD = rf"[ \u3000](?=[\w(（&+–-]){_CHAR}{{0,48}}+(?:{_RARE_CHAR}{_CHAR}{{0,48}}+){{0,4}}+"
_FILE_END = re.compile(
    r"\.(?:md|markdown|txt|docx?|pdf|epub|rtf|odt|pages|scriv|json|ya?ml|toml|xml|csv|xlsx?|pptx?|db|"
    r"sqlite3?|log|html?|css|[cm]?[jt]sx?|py|sh|bat|ps1|exe|dll|png|jpe?g|gif|webp|svg|psd|mp[34]|wav|"
    r"zip|rar|7z|gz|tar|bak|tmp|ini|cfg|conf|env|pem)(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)
_FILE_BESIDE_HAN = re.compile(r"\.[A-Za-z0-9]{1,8}(?=[^\x00-\x7f])")
_LATIN_BESIDE_HAN = re.compile(r"[\x21-\x7e]+(?=[^\x00-\x7f])")
_MORE_WORDS = re.compile(rf"(?:{_WORD}){{1,5}}")
_AFTER_HOMES = re.compile(r"(?:home|Users|Volumes|media)\\?/\Z")
_SENTENCE = re.compile(r"[，。；！？、,;!?\n]|\.\s|\s-|\\n")
_SEPARATORS = re.compile(r"[\\/]+")
_SPACES = frozenset(" \u3000")
_TRAILING = ".!~&=-"
_DOCUMENTS_FOLDER = ["Documents", "and", "Settings"]
_JOINING_WORDS = word_set(
    "a an and are as at but by for from in into is it not of on or that the then this to was where "
    "which will with"
)


def _any_of(words: str) -> str:
    """Write an alternation that is decided by the first letter."""
    by_letter = groupby(sorted(words.split()), key=itemgetter(0))
    return "|".join(
        f"{letter}(?:{'|'.join(word[1:] for word in group)})" for letter, group in by_letter
    )


# `f:\alpha` is a formula and no path.
_LATEX_COMMANDS = _any_of(
    "math[a-z]{2,4} text[a-z]{0,2} frac sqrt sum int prod lim to in mapsto times cdot ldots dots cdots alpha "
    "beta gamma delta epsilon theta lambda mu pi rho sigma phi psi omega infty forall exists leftarrow "
    "rightarrow longleftarrow longrightarrow Rightarrow Leftarrow quad qquad left right begin end item "
    "hline hspace vspace label ref cite emph R N Z Q C partial nabla leq? geq? neq? neg land lor wedge "
    "vee sin cos tan log ln vec hat bar tilde overline underline operatorname"
)
_LATEX_COMMAND = (
    rf"(?:(?:{_LATEX_COMMANDS})(?![A-Za-z])|[A-Za-z]+(?=[{{^]|_[{{0-9a-z](?![A-Za-z0-9])))"
)
_FORMULA = rf"{_LATEX_COMMAND}(?:\\{{1,2}}{_LATEX_COMMAND})*+(?!_?[A-Za-z0-9]*[\\/]|\.\w)"
_NO_FOLDER = rf"(?:{_LINE_ESCAPE}|[,;>{{|]|[!+](?!\w\w)|[swdSWD](?=[+*?\])}}|])|{_FORMULA})"
_NO_HOST = rf"(?:x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|[0-7]{{3}}|[!-#%-/@^`~=]|{_FORMULA})"


def _windows(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, (start, after) = match.string, match.span()
    slashes = 0 if text[after - 1] == "/" else after - start - len("C:")
    end = end_of_path(text, after, _STYLES[slashes], opened_by=text[start - 1 : start])
    no_name = text[after:end].rstrip("\\/") in ("", "Users")
    return NOTHING if no_name or (slashes == 0 and end - after < 2) else ((start, end),)


def _network(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, start, share = match.string, match.start(), match.start("share")
    lead, gap = match.group("lead", "gap")
    if len(lead) != 2 * len(gap) or not _begins_network(text, start):
        return NOTHING
    if len(lead) == 2 and _LINE_BREAK.match(text, share):
        return NOTHING
    end = end_of_path(text, share, _STYLES[len(gap)], opened_by=text[start - 1 : start])
    return ((start, end),) if end > share else NOTHING


def _begins_network(text: str, start: int) -> bool:
    r"""Distinguish a server's first backslashes from those inside `C:\\Users` or `https:\\`."""
    if not start or text[start - 1] != ":":
        return begins_token(text, start) and text[start - 1 : start] != "\\"
    return _SCHEME.search(text, max(0, start - LONGEST_SCHEME), start) is None


def _unix(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, (start, after) = match.string, match.span()
    if not _is_root(text, start):
        return NOTHING
    end = end_of_path(text, after, UNIX, opened_by=text[start - 1 : start])
    return ((start, end),) if end > after else NOTHING


def _is_root(text: str, start: int) -> bool:
    """Distinguish a path's first slash from one in a relative path, a URL or a request line."""
    before = text[start - 1] if start else "\n"
    may_be_request = before in " :：" and text[start - 2] in _REQUEST_ENDS
    if may_be_request and _REQUEST.search(text, max(0, start - 10), start):
        return False
    if before == " ":
        return True
    if before in "/\\":
        head = text[max(0, start - 8) : start]
        bare = head.rstrip("/\\")
        last = bare[-1:]
        return last not in _PATH_CHARS and not (last == ":" and len(head) - len(bare) == 1)
    if not before.isascii():
        is_personal = before not in _ENDS_OF_TITLES and _PERSONAL.match(text, start) is not None
        return is_personal or before in _BEFORE_ROOT
    if before not in _PATH_CHARS:
        return (before != "*" or begins_token(text, start)) and not _is_route(text, start, before)
    return (
        follows_escape(text, start)
        or _FLAG_OR_FILE_URL.search(text, max(0, start - 10), start) is not None
    )


def _is_route(text: str, start: int, before: str) -> bool:
    """Return whether this is the rest of a web address, or the target of a link."""
    first = max(0, start - LONGEST_HEAD)
    may_link = (
        before in _LINK_QUOTES and text[start - 2] in "=({" and text.startswith("/home", start)
    )
    if may_link and _LINK.search(text, max(0, start - LONGEST_LINK), start):
        return True
    return text.find("://", first, start) >= 0 and _ADDRESS.search(text, first, start) is not None


def _file_url(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, (start, after) = match.string, match.span()
    before = text[start - 1 : start]
    quoted = before in _CLOSING_QUOTES
    end = end_of_path(text, after, UNIX, opened_by=before) if quoted else end_of_url(text, after)
    return ((start, end),) if end > after else NOTHING


def _escaped_too(anchors: Iterable[str]) -> tuple[str, ...]:
    plain = tuple(anchors)
    return plain + tuple(anchor.replace("/", "\\/") for anchor in plain)


RULES = (
    RedactionRule(
        "file_url_abs_path",
        ("file:/", "file:\\/"),
        r"(?i)file:(?:(?:\\?/){3}|(?:\\?/){2}(?=[^\s\\/*]{1,128}\\?/)|\\?/)"
        r"(?:[A-Za-z](?::|%3A|\|)\\?/)?(?=[^\s\\/])",
        _file_url,
    ),
    RedactionRule(
        "unc_abs_path",
        ("\\\\",),
        rf"(?P<lead>\\{{8}}|\\{{4}}|\\{{2}})(?P<host>(?![.?]\\|{_NO_HOST})"
        r"[^\s\\/:*?\"'<>|,;，。；：、（）(){}\[\]]{2,64}+)"
        r"(?P<gap>\\{4}|\\{1,2})(?P<share>[^\s\\/:*?\"'<>|{}]{1,8})",
        _network,
        bounded=False,
    ),
    RedactionRule(
        "windows_abs_path",
        tuple(f"{drive}:{slash}" for drive in string.ascii_lowercase for slash in "\\/"),
        rf"[A-Za-z]:(?:\\?/|\\{{4}}|\\\\(?!{_LINE_ESCAPE}(?!\\))|\\(?!\\|(?<=[QAqa]:\\)n|{_NO_FOLDER}))"
        rf"(?![\\/]){_NO_STAND_IN}",
        _windows,
    ),
    RedactionRule(
        "unix_abs_path",
        _escaped_too(f"/{root.lower()}/" for root in _ROOTS),
        rf"\\?/(?:(?:{'|'.join(_ROOTS)})\\?/)++{_NO_STAND_IN}",
        _unix,
        bounded=False,
    ),
    RedactionRule(
        "unix_abs_path",
        _escaped_too(f"/{root.lower()}/" for root in _DEEP_ROOTS),
        rf"/(?:{'|'.join(_DEEP_ROOTS)})/".replace("/", r"\\?/")
        + rf"(?=[^\n\\/:*?\"<>|，。；]{{1,128}}\\?/){_NO_STAND_IN}",
        _unix,
        bounded=False,
    ),
    RedactionRule(
        "unix_abs_path",
        _escaped_too(("/cygdrive/", *(f"/{drive}/users/" for drive in "cdefgh"))),
        rf"\\?/(?:cygdrive\\?/[a-zA-Z]|[c-hC-H]\\?/Users)\\?/{_NO_STAND_IN}",
        _unix,
        bounded=False,
    ),
)


class PathStyle:
    """How a path separates its names, and whether spaces in them are to be expected."""

    def __init__(self, separator: str, *, spaced: bool) -> None:
        self.spaced = spaced
        self._separator = separator

    @cached_property
    def plain(self) -> "re.Pattern[str]":
        """Names without spaces, and what separates them."""
        chars = f"{_CHAR.replace('/', '')}*+"
        inside = self._separator if self.spaced else rf"{self._separator}|\\ "
        return re.compile(rf"{chars}(?:(?=[\\,;'(（\[])(?:{inside}|{_RARE_CHAR}){chars})*+")

    @cached_property
    def spaced_name(self) -> "re.Pattern[str]":
        """The rest of a name with spaces, if it leads to another separator."""
        return re.compile(rf"((?:{_WORD}){{1,5}})(?:/|{self._separator})++(?=\w)")


WINDOWS = PathStyle(r"\\(?:/|\\?(?![\\\"']))", spaced=True)
WINDOWS_ESCAPED = PathStyle(r"\\\\(?!\\)", spaced=True)
WINDOWS_TWICE_ESCAPED = PathStyle(r"\\{4}(?!\\)", spaced=True)
UNIX = PathStyle(r"\\/", spaced=False)
_STYLES = {0: WINDOWS, 1: WINDOWS, 2: WINDOWS_ESCAPED, 4: WINDOWS_TWICE_ESCAPED}
"""The style by how many backslashes separate two names."""


def end_of_path(text: str, start: int, style: PathStyle, *, opened_by: str = "") -> int:
    """Find the end of the path whose next name begins at `start`."""
    if opened_by in _CLOSING_QUOTES:
        quoted = _end_of_quotation(text, start, _CLOSING_QUOTES[opened_by])
        if quoted > start:
            return quoted
    end = _end_of_names(text, start, style)
    spaced = text[end : end + 1] in _SPACES
    if spaced:
        start, end = _skip_spaced_names(text, start, end, style)
    if (
        not (spaced and style.spaced)
        and text[end - 1] not in _TRAILING
        and text[start:end].isascii()
    ):
        return end
    return _end_of_file_name(text, start, end, style)


def end_of_url(text: str, start: int) -> int:
    """Find the end of a URL whose next name begins at `start`; it has no spaces."""
    return _end_of_file_name(text, start, _end_of_names(text, start, UNIX), UNIX)


def _end_of_names(text: str, start: int, style: PathStyle) -> int:
    names = style.plain.match(text, start)
    return start if names is None else names.end()


def _skip_spaced_names(text: str, start: int, end: int, style: PathStyle) -> tuple[int, int]:
    """Skip names with spaces; return where the names behind the last of them start and end."""
    while text[end : end + 1] in _SPACES:
        more = style.spaced_name.match(text, end)
        if more is None or not _continues_name(
            text, _last_name(text, start, end, style), more, style
        ):
            break
        start = more.end()
        end = _end_of_names(text, start, style)
    return start, end


def _last_name(text: str, start: int, end: int, style: PathStyle) -> int:
    """Find where the last of some names begins."""
    slash = text.rfind("/", start, end)
    if style.spaced:
        slash = max(slash, text.rfind("\\", start, end))
    return start if slash < 0 else slash + 1


def _continues_name(text: str, place: int, more: "re.Match[str]", style: PathStyle) -> bool:
    """Return whether the words up to the next separator belong to the name that begins at `place`."""
    name, words = text[place : more.start()], more[1].split()
    if not name or _FILE_END.search(name):
        return False
    if not _JOINING_WORDS.isdisjoint(map(str.lower, words)):
        return _is_title(name, words)
    expected = style.spaced or _AFTER_HOMES.search(text, max(0, place - 9), place)
    return bool(expected) or all(map(_begins_as_name, words))


def _is_title(name: str, words: Sequence[str]) -> bool:
    """Distinguish `The Lord of the Rings` from the sentence around a path."""
    capital = name != "" and _begins_as_name(name) and _begins_as_name(words[-1])
    return capital and (
        words[0].lower() not in _JOINING_WORDS or [name, *words] == _DOCUMENTS_FOLDER
    )


def _begins_as_name(word: str) -> bool:
    return word[0].isalnum() and not "a" <= word[0] <= "z"


def _end_of_file_name(text: str, start: int, end: int, style: PathStyle) -> int:
    words = _words_of_file_name(text, end) if style.spaced and text[end : end + 1] == " " else ""
    if not words and text[end - 1] not in _TRAILING and text[start:end].isascii():
        return end
    place = _last_name(text, start, end, style)
    name = text[place:end]
    if not name.isascii():
        short = _FILE_BESIDE_HAN.search(name) or _LATIN_BESIDE_HAN.match(name)
        if short:
            return place + short.end()
    if words and not _FILE_END.search(name):
        listed = words.split()
        if _JOINING_WORDS.isdisjoint(listed) or _is_title(name, listed):
            return end + len(words)
    return place + len(name.rstrip(_TRAILING) or name.rstrip(".!"))


def _words_of_file_name(text: str, start: int) -> str:
    """Return the words that lead to the ending of a file, with the spaces before them."""
    if text.find(".", start, start + LONGEST_QUOTATION) < 0:
        return ""
    more = _MORE_WORDS.match(text, start)
    ending = more and _FILE_END.search(more[0])
    return more[0][: ending.end()] if more and ending else ""


def _end_of_quotation(text: str, start: int, closing: str) -> int:
    """Take a quoted path to its closing quote, unless the quotation is a sentence."""
    end = text.find(closing, start, start + LONGEST_QUOTATION)
    inside = text[start:end] if end > start else ""
    if not inside or _SENTENCE.search(inside) or (" " in inside and _is_sentence(inside)):
        return -1
    return end - (1 if closing == '"' and inside.endswith("\\") else 0)


def _is_sentence(inside: str) -> bool:
    words = inside.lower().split()
    if len(words) > MOST_WORDS or _JOINING_WORDS.isdisjoint(words[1:]):
        return len(words) > MOST_WORDS
    file = _FILE_END.search(inside)
    if file:
        return file.end() < len(inside)
    return not _JOINING_WORDS.isdisjoint(_SEPARATORS.split(inside)[-1].lower().split()[1:])
