"""Where a path ends: not always at its first space, and never just at the end of the line.

Knows what names of folders and files look like; knows nothing of where paths begin.
"""

import re
from functools import cached_property

from creonowd.redaction.vocabulary import JOINING_WORDS

LONGEST_LOOK_AHEAD = 256
LONGEST_QUOTATION = 240

_CHAR = r"[^\s\\/:*?\"'<>|`，。；：！？、“”‘’「」『』《》【】〈〉（）…,;(){}\[\]\x00-\x1f\x7f]"
_ODD_CHAR = (
    rf"(?:[,;](?={_CHAR}{{1,64}}[\\/])|(?<=[A-Za-z])'(?=[A-Za-z]{{1,16}}[\\/])"
    r"|\([^()\s\\/\"']{1,24}\)|（[^（）\s\\/]{1,24}）|\[[^\[\]\s\\/\"']{1,24}\])"
)
_NAME = rf"(?:{_CHAR}++|{_ODD_CHAR})"
_WORD = rf"[ \u3000](?=[\w(（&+–-])(?:{_CHAR}|{_ODD_CHAR}){{1,48}}+"
_FILE_END = re.compile(
    r"\.(?:md|markdown|txt|docx?|pdf|epub|rtf|odt|pages|scriv|json|ya?ml|toml|xml|csv|xlsx?|pptx?|db|"
    r"sqlite3?|log|html?|css|[cm]?[jt]sx?|py|sh|bat|ps1|exe|dll|png|jpe?g|gif|webp|svg|psd|mp[34]|wav|"
    r"zip|rar|7z|gz|tar|bak|tmp|ini|cfg|conf|env|pem)(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)
_FILE_BESIDE_HAN = re.compile(r"\.[A-Za-z0-9]{1,8}(?=[^\x00-\x7f])")
_LATIN_BESIDE_HAN = re.compile(r"[\x21-\x7e]+(?=[^\x00-\x7f])")
_MORE_WORDS = re.compile(rf"(?:{_WORD}){{1,4}}")
_PEOPLE = re.compile(r"(?:home|Users|Volumes|media)\\?/\Z")
_SENTENCE = re.compile(r"[，。；！？、,;!?\n]|\.\s|\s-|\\n")
_CLOSING = dict(zip("\"'`“‘「『《<", "\"'`”’」』》>", strict=True))


class Style:
    """How a path separates its names, and whether spaces in them are to be expected."""

    def __init__(self, separator: str, *, spaced: bool) -> None:
        self.spaced = spaced
        self._separator = separator
        self._name = _NAME if spaced else rf"(?:{_NAME}|\\ )"

    @cached_property
    def plain(self) -> "re.Pattern[str]":
        """Names without spaces; the second group is the last of them."""
        return re.compile(rf"((?:{self._name}++{self._separator})*+)({self._name}*+)")

    @cached_property
    def spaced_name(self) -> "re.Pattern[str]":
        """The rest of a name with spaces, if it leads to another separator."""
        return re.compile(rf"((?:{_WORD}){{1,5}}){self._separator}(?=\w)")


WINDOWS = Style(r"(?:\\?/|\\{1,2})", spaced=True)
WINDOWS_ESCAPED = Style(r"(?:\\\\|/)", spaced=True)
WINDOWS_TWICE_ESCAPED = Style(r"(?:\\{4}|/)", spaced=True)
UNIX = Style(r"(?:\\?/)+", spaced=False)


def end_of_path(text: str, start: int, style: Style, *, opened_by: str = "") -> int:
    """Find the end of the path whose next name begins at `start`."""
    quoted = _end_of_quotation(text, start, opened_by)
    if quoted > start:
        return quoted
    place, end = _last_name(text, start, style)
    while text[end : end + 1] in (" ", "\u3000"):
        word = _spaced_name(text, place, end, style)
        if word is None:
            break
        place, end = _last_name(text, word, style)
    return _end_of_file_name(text, place, end, style)


def _last_name(text: str, start: int, style: Style) -> tuple[int, int]:
    """Go over names without spaces; tell where the last one begins and ends."""
    match = style.plain.match(text, start)
    return (start, start) if match is None else match.span(2)


def _spaced_name(text: str, place: int, end: int, style: Style) -> int | None:
    """Go on over spaces if they lead to another separator; tell where the next name begins."""
    if end == place or _FILE_END.search(text, place, end):
        return None
    more = style.spaced_name.match(text, end)
    if more is None:
        return None
    words = more[1].split()
    if not JOINING_WORDS.isdisjoint(map(str.lower, words)):
        return None
    people = style.spaced or _PEOPLE.search(text, max(0, place - 9), place)
    return more.end() if people or all(map(_begins_a_name, words)) else None


def _begins_a_name(word: str) -> bool:
    return word[0].isalnum() and not "a" <= word[0] <= "z"


def _end_of_file_name(text: str, place: int, end: int, style: Style) -> int:
    if not text[place:end].isascii():
        short = _FILE_BESIDE_HAN.search(text, place, end) or _LATIN_BESIDE_HAN.match(
            text, place, end
        )
        if short:
            return short.end()
    if style.spaced and text[end : end + 1] == " " and not _FILE_END.search(text, place, end):
        more = _MORE_WORDS.match(text, end)
        ending = more and _FILE_END.search(more[0])
        if more and ending and JOINING_WORDS.isdisjoint(more[0].split()):
            return end + ending.end()
    name = text[place:end].rstrip(".!~&=-")
    return place + len(name) if name else place + len(text[place:end].rstrip(".!"))


def _end_of_quotation(text: str, start: int, opened_by: str) -> int:
    """Take a quoted path to its closing quote, unless the quotation is a sentence."""
    closing = _CLOSING.get(opened_by)
    if closing is None:
        return -1
    end = text.find(closing, start, start + LONGEST_QUOTATION)
    inside = text[start:end] if end > start else ""
    if not inside or _SENTENCE.search(inside):
        return -1
    words = inside.lower().split()
    if len(words) > 8 or not JOINING_WORDS.isdisjoint(words[1:]):
        return -1
    return end - (1 if closing == '"' and inside.endswith("\\") else 0)
