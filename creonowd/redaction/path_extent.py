"""Where a path ends: not always at its first space, and never just at the end of the line.

Knows what names of folders and files look like; knows nothing of where paths begin.
"""

import re
from collections.abc import Sequence
from functools import cached_property

from creonowd.redaction.vocabulary import JOINING_WORDS

LONGEST_QUOTATION = 240
MOST_WORDS = 8

_CHAR = r"[^\s\\/:*?\"'<>|`，。；：！？、“”‘’「」『』《》【】〈〉（）…,;(){}\[\]\x00-\x1f\x7f]"
_ODD_CHAR = (
    rf"(?:[,;](?={_CHAR}{{1,64}}[\\/])|(?<=[A-Za-z])'(?=[A-Za-z]{{1,16}}[\\/])"
    r"|\([^()\s\\/\"']{1,24}\)|（[^（）\s\\/]{1,24}）|\[[^\[\]\s\\/\"']{1,24}\])"
)
_WORD = rf"[ \u3000](?=[\w(（&+–-]){_CHAR}{{0,48}}+(?:{_ODD_CHAR}{_CHAR}{{0,48}}+){{0,4}}+"
_FILE_END = re.compile(
    r"\.(?:md|markdown|txt|docx?|pdf|epub|rtf|odt|pages|scriv|json|ya?ml|toml|xml|csv|xlsx?|pptx?|db|"
    r"sqlite3?|log|html?|css|[cm]?[jt]sx?|py|sh|bat|ps1|exe|dll|png|jpe?g|gif|webp|svg|psd|mp[34]|wav|"
    r"zip|rar|7z|gz|tar|bak|tmp|ini|cfg|conf|env|pem)(?![A-Za-z0-9_-])",
    re.IGNORECASE,
)
_FILE_BESIDE_HAN = re.compile(r"\.[A-Za-z0-9]{1,8}(?=[^\x00-\x7f])")
_LATIN_BESIDE_HAN = re.compile(r"[\x21-\x7e]+(?=[^\x00-\x7f])")
_MORE_WORDS = re.compile(rf"(?:{_WORD}){{1,5}}")
_PEOPLE = re.compile(r"(?:home|Users|Volumes|media)\\?/\Z")
_SENTENCE = re.compile(r"[，。；！？、,;!?\n]|\.\s|\s-|\\n")
_SEPARATORS = re.compile(r"[\\/]+")
_SPACES = frozenset(" \u3000")
_LOOSE = ".!~&=-"
_DOCUMENTS = ["Documents", "and", "Settings"]
QUOTES = dict(zip("\"'`“‘「『《<", "\"'`”’」』》>", strict=True))
"""What closes a quotation, by what opens it."""


class Style:
    """How a path separates its names, and whether spaces in them are to be expected."""

    def __init__(self, separator: str, *, spaced: bool) -> None:
        self.spaced = spaced
        self._separator = separator

    @cached_property
    def plain(self) -> "re.Pattern[str]":
        """Names without spaces, and what separates them."""
        chars = f"{_CHAR.replace('/', '')}*+"
        inside = self._separator if self.spaced else rf"{self._separator}|\\ "
        return re.compile(rf"{chars}(?:(?=[\\,;'(（\[])(?:{inside}|{_ODD_CHAR}){chars})*+")

    @cached_property
    def spaced_name(self) -> "re.Pattern[str]":
        """The rest of a name with spaces, if it leads to another separator."""
        return re.compile(rf"((?:{_WORD}){{1,5}})(?:/|{self._separator})++(?=\w)")


WINDOWS = Style(r"\\(?:/|\\?(?![\\\"']))", spaced=True)
WINDOWS_ESCAPED = Style(r"\\\\(?!\\)", spaced=True)
WINDOWS_TWICE_ESCAPED = Style(r"\\{4}(?!\\)", spaced=True)
UNIX = Style(r"\\/", spaced=False)


def end_of_path(text: str, start: int, style: Style, *, opened_by: str = "") -> int:
    """Find the end of the path whose next name begins at `start`."""
    if opened_by in QUOTES:
        quoted = _end_of_quotation(text, start, QUOTES[opened_by])
        if quoted > start:
            return quoted
    end = _end_of_names(text, start, style)
    spaced = text[end : end + 1] in _SPACES
    if spaced:
        start, end = _beyond_spaces(text, start, end, style)
    if not (spaced and style.spaced) and text[end - 1] not in _LOOSE and text[start:end].isascii():
        return end
    return _end_of_file_name(text, start, end, style)


def end_of_url(text: str, start: int) -> int:
    """Find the end of a URL whose next name begins at `start`; it has no spaces."""
    return _end_of_file_name(text, start, _end_of_names(text, start, UNIX), UNIX)


def _end_of_names(text: str, start: int, style: Style) -> int:
    names = style.plain.match(text, start)
    return start if names is None else names.end()


def _beyond_spaces(text: str, start: int, end: int, style: Style) -> tuple[int, int]:
    """Go on over names with spaces; tell where the names behind the last of them start and end."""
    while text[end : end + 1] in _SPACES:
        more = style.spaced_name.match(text, end)
        if more is None or not _goes_on(text, _last_name(text, start, end, style), more, style):
            break
        start = more.end()
        end = _end_of_names(text, start, style)
    return start, end


def _last_name(text: str, start: int, end: int, style: Style) -> int:
    """Find where the last of some names begins."""
    slash = text.rfind("/", start, end)
    if style.spaced:
        slash = max(slash, text.rfind("\\", start, end))
    return start if slash < 0 else slash + 1


def _goes_on(text: str, place: int, more: "re.Match[str]", style: Style) -> bool:
    """Tell whether the words up to the next separator belong to the name that begins at `place`."""
    name, words = text[place : more.start()], more[1].split()
    if not name or _FILE_END.search(name):
        return False
    if not JOINING_WORDS.isdisjoint(map(str.lower, words)):
        return _is_title(name, words)
    people = style.spaced or _PEOPLE.search(text, max(0, place - 9), place)
    return bool(people) or all(map(_begins_a_name, words))


def _is_title(name: str, words: Sequence[str]) -> bool:
    """Tell `The Lord of the Rings` from the sentence around a path."""
    named = name != "" and _begins_a_name(name) and _begins_a_name(words[-1])
    return named and (words[0].lower() not in JOINING_WORDS or [name, *words] == _DOCUMENTS)


def _begins_a_name(word: str) -> bool:
    return word[0].isalnum() and not "a" <= word[0] <= "z"


def _end_of_file_name(text: str, start: int, end: int, style: Style) -> int:
    words = _words_of_file_name(text, end) if style.spaced and text[end : end + 1] == " " else ""
    if not words and text[end - 1] not in _LOOSE and text[start:end].isascii():
        return end
    place = _last_name(text, start, end, style)
    name = text[place:end]
    if not name.isascii():
        short = _FILE_BESIDE_HAN.search(name) or _LATIN_BESIDE_HAN.match(name)
        if short:
            return place + short.end()
    if words and not _FILE_END.search(name):
        listed = words.split()
        if JOINING_WORDS.isdisjoint(listed) or _is_title(name, listed):
            return end + len(words)
    return place + len(name.rstrip(_LOOSE) or name.rstrip(".!"))


def _words_of_file_name(text: str, start: int) -> str:
    """Give the words that lead to the ending of a file, with the spaces before them."""
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
    if len(words) > MOST_WORDS or JOINING_WORDS.isdisjoint(words[1:]):
        return len(words) > MOST_WORDS
    file = _FILE_END.search(inside)
    if file:
        return file.end() < len(inside)
    return not JOINING_WORDS.isdisjoint(_SEPARATORS.split(inside)[-1].lower().split()[1:])
