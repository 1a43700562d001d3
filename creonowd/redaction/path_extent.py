"""Where a path ends: not always at its first space, and never just at the end of the line.

Knows what names of folders and files look like; knows nothing of where paths begin.
"""

import re
from typing import NamedTuple

from creonowd.redaction.vocabulary import JOINING_WORDS

LONGEST_PATH = 4096
LONGEST_QUOTATION = 512

_CHAR = r"[^\s\\/:*?\"'<>|`，。；：！？、“”‘’「」『』《》【】〈〉（）…,;(){}\[\]\x00-\x1f\x7f]"
_NAME = (
    rf"(?:{_CHAR}|[,;](?={_CHAR}{{1,64}}[\\/])|(?<=[A-Za-z])'(?=[A-Za-z]{{1,16}}[\\/])"
    r"|\([^()\s\\/\"']{1,24}\)|（[^（）\s\\/]{1,24}）|\[[^\[\]\s\\/\"']{1,24}\])"
)
_WORD = rf"[ \u3000](?=[\w(（&+–-]){_NAME}{{1,64}}+"
_FILE_END = (
    r"\.(?:md|markdown|txt|docx?|pdf|epub|rtf|odt|pages|scriv|json|ya?ml|toml|xml|csv|xlsx?|pptx?|db|"
    r"sqlite3?|log|html?|css|[cm]?[jt]sx?|py|sh|bat|ps1|exe|dll|png|jpe?g|gif|webp|svg|psd|mp[34]|wav|"
    r"zip|rar|7z|gz|tar|bak|tmp|ini|cfg|conf|env|pem)(?![A-Za-z0-9_-])"
)
_HAS_FILE_END = re.compile(_FILE_END, re.IGNORECASE)
_FILE_BESIDE_HAN = re.compile(r"\.[A-Za-z0-9]{1,8}(?=[^\x00-\x7f])")
_HAN_AFTER_LATIN = re.compile(r"[\x21-\x7e]+(?=[^\x00-\x7f])")
_PEOPLE = re.compile(r"(?:home|Users)\\?/\Z")
_CLOSING = {
    '"': '"',
    "'": "'",
    "`": "`",
    "“": "”",
    "‘": "’",
    "「": "」",
    "『": "』",
    "《": "》",
    "<": ">",
}
_SENTENCE = re.compile(r"[，。；！？、,;!?]|\.\s|\s-")


class Style(NamedTuple):
    """How a path separates its names, and whether spaces in them are to be expected."""

    separator: str
    spaced: bool


WINDOWS = Style(r"(?:\\{1,2}|/)", spaced=True)
WINDOWS_ESCAPED = Style(r"(?:\\\\|/)", spaced=True)
WINDOWS_TWICE_ESCAPED = Style(r"(?:\\{4}|/)", spaced=True)
UNIX = Style(r"(?:\\?/)+", spaced=False)


def end_of_path(text: str, start: int, style: Style, *, opened_by: str = "") -> int:
    """Find the end of the path whose next name begins at `start`."""
    quoted = _end_of_quotation(text, start, opened_by)
    if quoted > start:
        return quoted
    limit = start + LONGEST_PATH
    place, end = _plain(text, start, limit, style)
    while end < limit:
        word = _spaced_name(text, place, end, style)
        if word is None:
            break
        place, end = _plain(text, word, limit, style)
    return _end_of_file_name(text, place, end, style)


def _plain(text: str, start: int, limit: int, style: Style) -> tuple[int, int]:
    """Go over names without spaces; tell where the last one begins and ends."""
    folders = re.compile(rf"(?:{_NAME}{{1,255}}+{style.separator})*+").match(text, start, limit)
    place = start if folders is None else folders.end()
    name = re.compile(rf"{_NAME}{{0,255}}+").match(text, place, limit)
    return place, place if name is None else name.end()


def _spaced_name(text: str, place: int, end: int, style: Style) -> int | None:
    """Go on over spaces if they lead to another separator; tell where the next name begins."""
    if end == place or _HAS_FILE_END.search(text, place, end):
        return None
    more = re.compile(rf"((?:{_WORD}){{1,5}}){style.separator}(?=\w)").match(text, end)
    if more is None:
        return None
    words = more[1].split()
    if any(word.lower() in JOINING_WORDS for word in words):
        return None
    if not style.spaced and not _PEOPLE.search(text, max(0, place - 8), place):
        if not all(word[0].isalnum() and not "a" <= word[0] <= "z" for word in words):
            return None
    return more.end()


def _end_of_file_name(text: str, place: int, end: int, style: Style) -> int:
    for cut in (_FILE_BESIDE_HAN, _HAN_AFTER_LATIN):
        short = (
            cut.search(text, place, end) if cut is _FILE_BESIDE_HAN else cut.match(text, place, end)
        )
        if short:
            return short.end()
    if style.spaced and not _HAS_FILE_END.search(text, place, end):
        more = re.compile(rf"(?:{_WORD}){{1,4}}").match(text, end)
        if (
            more
            and _HAS_FILE_END.search(more[0])
            and not JOINING_WORDS.intersection(more[0].split())
        ):
            ending = _HAS_FILE_END.search(more[0])
            return end + (0 if ending is None else ending.end())
    return max(place, end - _trailing(text[place:end]))


def _trailing(name: str) -> int:
    return len(name) - len(name.rstrip(".!~&=-"))


def _end_of_quotation(text: str, start: int, opened_by: str) -> int:
    """Take a quoted path to its closing quote, unless the quotation is a sentence."""
    closing = _CLOSING.get(opened_by)
    if closing is None:
        return -1
    end = text.find(closing, start, start + LONGEST_QUOTATION)
    inside = text[start:end] if end > start else ""
    if not inside or "\n" in inside or "\\n" in inside or _SENTENCE.search(inside):
        return -1
    words = inside.split()
    if len(words) > 8 or any(word.lower() in JOINING_WORDS for word in words[1:]):
        return -1
    return end - (1 if closing == '"' and inside.endswith("\\") else 0)
