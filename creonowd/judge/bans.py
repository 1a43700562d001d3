"""Constraints that a program can check without guessing: banned punctuation and quoted words.

A constraint is a ban only if it forbids something and names beyond doubt what it forbids.
「避免使用感叹号和省略号」 is one; 「避免使用现代词汇」 is not.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import regex

EMOJI = r"\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F"
LONGEST_CONSTRAINT = 500

_MARKS: Mapping[str, str] = {
    "感叹号|惊叹号|叹号": "[！!]+",
    "省略号": r"…+|\.{3,}|。{2,}",
    "破折号": "[—―]+|--+",
    "问号": "[？?]+",
    "分号": "[；;]",
    "冒号": "[：:]",
    "顿号": "、",
    "括号|圆括号": "[（）()]",
    "书名号": "[《》〈〉]",
    "引号": '[“”"「」『』]',
    "双引号": '[“”"]',
    "单引号": "[‘’]",
    "波浪号|波浪线": "[～~]+",
    "星号": r"\*+",
    "表情符号|emoji": EMOJI,
    "exclamation (?:mark|point)s?": "[！!]+",
    "ellips[ie]s": r"…+|\.{3,}",
    "(?:em )?dash(?:es)?": "[—―]+|--+",
    "question marks?": "[？?]+",
    "semicolons?": "[；;]",
    "colons?": "[：:]",
    "parenthes[ie]s": "[（）()]",
    "asterisks?": r"\*+",
    "emojis?": EMOJI,
}
_VERB = (
    r"(?:请|全文|文中|正文|一律|绝对|严格)*"
    r"(?:避免|禁止|严禁|禁用|不要|不得|不可以?|不能|不许|不准|不应|切勿|请勿|勿|别|不)"
    r"(?:再)?(?:使用|出现|用到|用|写|含有|包含|有)?(?:任何|以下|下列)?(?:的)?(?:词语|词|字|标点)?[：:]?"
)
_ENGLISH_VERB = (
    r"(?:please )?(?:do not|don't|never|avoid|no|must not) ?(?:use|using|write|contain)?"
    r" ?(?:any|the)? ?(?:words?|phrases?)?:? ?"
)
_QUOTED = r"“([^“”]+)”|「([^「」]+)」|『([^『』]+)』|\"([^\"]+)\"|‘([^‘’]+)’|'([^']+)'"
_JOINT = r"(?:\s|、|，|,|/|和|与|或者?|以及|及|跟|and|or|nor)*"
_OPEN = r"(?P<open>等等?(?:词语|词|字|标点符号|标点|符号)?|etc\.?)?"
_ITEM = "|".join([_QUOTED, *(f"(?:{names})" for names in _MARKS)])
_BAN = re.compile(
    rf"(?:{_VERB}|{_ENGLISH_VERB})(?P<items>(?:(?:{_ITEM}){_JOINT})+){_OPEN}(?:这些|这类|之类)?"
    r"(?:的)?(?:词语|词|字眼|字|标点符号|标点|符号)?[。.！!；;\s]*",
    re.IGNORECASE,
)
_ITEMS = re.compile(_ITEM, re.IGNORECASE)


class Ban(NamedTuple):
    """A pattern that may not occur; `whole` if the constraint asks for nothing else."""

    pattern: "regex.Pattern[str]"
    whole: bool


class BannedSpan(NamedTuple):
    """A part of an output that matches a ban."""

    start: int
    end: int
    text: str


@lru_cache(maxsize=2048)
def ban_in(constraint: str) -> Ban | None:
    """Read a constraint as a ban; None if it is, or may be, something else."""
    match = _BAN.fullmatch(constraint.strip()) if len(constraint) <= LONGEST_CONSTRAINT else None
    if match is None:
        return None
    patterns = [_pattern(item) for item in _ITEMS.finditer(match["items"])]
    return Ban(regex.compile("|".join(patterns), regex.IGNORECASE), whole=match["open"] is None)


def hits(ban: Ban, text: str) -> Iterator[BannedSpan]:
    """Find every place where a ban is broken."""
    return (BannedSpan(*match.span(), match[0]) for match in ban.pattern.finditer(text))


def word_pattern(word: str) -> str:
    """Match a word itself: within Chinese anywhere, in Latin script not inside another word."""
    escaped = regex.escape(word, literal_spaces=True)
    before = r"(?<![A-Za-z0-9_])" if word[0].isascii() and word[0].isalnum() else ""
    after = r"(?![A-Za-z0-9_])" if word[-1].isascii() and word[-1].isalnum() else ""
    return f"{before}{escaped}{after}"


def _pattern(item: "re.Match[str]") -> str:
    word = next((group for group in item.groups() if group), None)
    if word is not None:
        return word_pattern(word.strip() or word)
    return next(p for names, p in _MARKS.items() if re.fullmatch(names, item[0], re.IGNORECASE))
