"""Constraints that a program can check without guessing: banned punctuation and banned words.

A constraint is a ban only if it forbids something everywhere and names beyond doubt what it
forbids. 「避免使用感叹号和省略号」 is one; 「避免使用现代词汇」 and 「对话中不用“忽然”」 are not.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

import regex

EMOJI = r"\p{Emoji_Presentation}|\p{Extended_Pictographic}\uFE0F"
LONGEST_CONSTRAINT = 500
LONGEST_BARE_WORD = 40

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
    "表情符号": EMOJI,
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

_QUOTED = r"“([^“”]+)”|「([^「」]+)」|『([^『』]+)』|\"([^\"]+)\"|‘([^‘’]+)’|'([^']+)'"
_ITEM = "|".join([_QUOTED, *(f"(?:{names})" for names in _MARKS)])
_JOINT = r"(?:\s|、|，|,|/|和|与|或者?|以及|及|跟|and|or|nor)*"
_LIST = rf"(?P<items>(?:(?:{_ITEM}){_JOINT})+)"
_END = r"[。.！!；;\s]*"

# Chinese: [everywhere] [at all costs] not use [this word] “X” [this word]
_KIND = "(?:词语|词汇|词|字眼|字样|字|短语|说法|表达|标点符号|标点|符号)"
_TEXT = "(?:全文|全书|全篇|通篇|本书|本文|文中|正文|书中|小说|作品|行文|写作|文章|文本)"
_EVERYWHERE = rf"(?:请?在?{_TEXT}(?:当?中|里|内|时)?[，,：:]?)?"
_FIRMLY = "(?:请|务必|必须|都|均|也|一律|一概|绝对|严格|坚决|永远|千万|绝|决|任何时候|任何情况下)*"
_NOT = (
    "(?:避免|禁止|严禁|禁用|忌用|避用|停用|弃用|切忌|杜绝|拒绝|不要|不得|不可以|不可|不能够|不能"
    "|不许|不准|不允许|不应该|不应当|不应|不该|永不|切勿|切莫|请勿|勿|莫|别|不)"
)
_USE = "(?:再)?(?:使用|采用|运用|出现|用到|用上|用|写出|写到|写|含有|包含|含|带有|带|存在|有)"
_SUCH = "(?P<such>像|诸如|例如|比如|譬如|类似于?)"
_WHICH = rf"(?:任何|以下|下列|如下)?{_SUCH}?(?:这个|这些|这|那个|那些)?的?{_KIND}?[：:]?\s*"
_COUNT = "(?:一|两|二|三|四|五|六|几|些)"
_THIS_WORD = rf"(?:[这那]?{_COUNT}?个?{_KIND})"
_AND_MORE = (
    rf"(?P<open>(?:等等?|之类|这类|这样|这种|此类|一类|诸如此类)的?{_KIND}?"
    rf"|{_JOINT}其?(?:近义|同义|类似)的?{_KIND}|,?\s*etc\.?)"
)
_FORBIDDEN_LATER = (
    rf"(?:{_FIRMLY}(?:(?:禁用|忌用|避用|停用|弃用|避免|禁止|严禁|杜绝|不要|不许|不准|不可以)"
    rf"|(?:避免|禁止|严禁|不要|不得|不可以|不可|不能|不许|不准|不允许|不应该|不应当|不应|不该){_USE})"
    rf"|{_FIRMLY}(?:是|为|属于)(?:违?禁用?|忌用){_KIND})(?:在{_TEXT}(?:中|里)?)?"
)

# English: never [ever] use the word "X" [anywhere]
_ENGLISH_NOT = (
    r"(?:please\s+)?(?:you\s+)?(?:do\s+not|don['’]t|never|must\s+(?:not|never)|may\s+not"
    r"|should\s+(?:not|never)|shall\s+not|can\s?not|can['’]t|avoid|no|without|omit|ban|forbid"
    r"|prohibit|refrain\s+from|stay\s+away\s+from|steer\s+clear\s+of)(?:\s+ever)?"
)
_ENGLISH_USE = r"(?:\s*\b(?:use|using|write|writing|contain|include|including|employ))?"
_ENGLISH_SUCH = r"(?P<such>such\s+as|like)"
_ENGLISH_KIND = r"(?:words?|phrases?|terms?|expressions?)"
_ENGLISH_WHICH = (
    rf"\s*(?:any\s+of\s*)?(?:(?:any|the|these|this|those)\s*)?(?:following\s*)?{_ENGLISH_KIND}?"
    rf"\s*{_ENGLISH_SUCH}?\s*:?\s*"
)
_ENGLISH_AND_MORE = (
    r"(?P<open>,?\s*(?:etc\.?|and\s+so\s+on|and\s+the\s+like"
    rf"|(?:and|or)?\s*(?:other\s+)?similar(?:\s+{_ENGLISH_KIND})?))"
)
_ENGLISH_EVERYWHERE = (
    r"(?:\s*(?:anywhere|at\s+all|ever|in\s+(?:the|this)\s+(?:text|novel|story|book)))*"
)
_ENGLISH_FORBIDDEN_LATER = (
    r"\s*(?:(?:is|are)\s+(?:strictly\s+)?(?:banned|forbidden|prohibited|taboo|off[\s-]limits"
    r"|not\s+(?:allowed|permitted|to\s+be\s+used)|never\s+to\s+be\s+used)"
    r"|(?:(?:must|may|should|shall|can)\s+(?:not|never)|cannot|can['’]t|never)"
    r"\s+(?:be\s+used|appear|occur))"
)

# Forms that name what is banned in quotes, or by the name of a mark.
_NAMED = tuple(
    re.compile(form + _END, re.IGNORECASE)
    for form in (
        (
            rf"{_EVERYWHERE}{_FIRMLY}{_NOT}(?:{_USE})?{_WHICH}{_LIST}(?:{_AND_MORE}|{_THIS_WORD})?"
            r"(?:的?(?:出现|使用))?"
        ),
        rf"{_EVERYWHERE}{_KIND}?{_LIST}(?:{_AND_MORE}|{_THIS_WORD})?[，,]?{_FORBIDDEN_LATER}",
        (
            rf"{_ENGLISH_NOT}{_ENGLISH_USE}{_ENGLISH_WHICH}{_LIST}{_ENGLISH_AND_MORE}?"
            rf"{_ENGLISH_EVERYWHERE}"
        ),
        (
            rf"(?:the\s+)?(?:{_ENGLISH_KIND}\s+)?{_LIST}{_ENGLISH_AND_MORE}?{_ENGLISH_FORBIDDEN_LATER}"
            rf"{_ENGLISH_EVERYWHERE}"
        ),
    )
)

# Forms that name bare words: behind a heading, or before or behind 一词, 二字, "the word".
_HEADED = re.compile(
    rf"(?:{_TEXT}的?)?(?:禁用|违禁|忌用|避用|禁|(?:禁止|严禁|不得|不要|不可|不能|不许)(?:使用|出现|用)的?"
    rf"|[需要应]?避免(?:使用)?的){_KIND}(?:表|列表|清单)?(?:如下)?[：:]\s*(?P<bare>.+?){_END}"
    r"|(?:(?:the\s+)?(?:banned|forbidden|prohibited|disallowed|taboo|off-limits)\s+"
    rf"{_ENGLISH_KIND}(?:\s+list)?|{_ENGLISH_KIND}\s+(?:to\s+avoid|(?:not|never)\s+to\s+use)"
    rf"|{_ENGLISH_NOT}{_ENGLISH_USE}\s+(?:any\s+of\s+)?(?:the|these)\s+(?:following\s+)?"
    rf"{_ENGLISH_KIND})\s*:\s*(?P<english>.+?){_END}",
    re.IGNORECASE,
)
_CHINESE_BARE = re.compile(
    rf"{_EVERYWHERE}{_FIRMLY}{_NOT}{_USE}(?P<bare>[\u4e00-\u9fff]{{2,8}}?)"
    r"(?:(?:[这那]一?个?|一个?)词语?|[这那]?(?P<count>[两二三四])个?字|字样)" + _END
)
_ENGLISH_BARE = re.compile(
    rf"{_ENGLISH_NOT}{_ENGLISH_USE}\s+(?:the|these)\s+(?:words?|terms?)\s+(?P<english>.+?)"
    rf"{_ENGLISH_EVERYWHERE}{_END}"
    r"|the\s+(?:words?|terms?)\s+(?P<later>.+?)"
    rf"{_ENGLISH_FORBIDDEN_LATER}{_ENGLISH_EVERYWHERE}{_END}",
    re.IGNORECASE,
)
_COUNTS = {"两": 2, "二": 2, "三": 3, "四": 4}
_SEPARATOR = re.compile(
    r"[、，,；;/|]\s*(?:(?:and|or)\s+)?|\s+(?:and|or|nor)\s+|(?<=[^\x00-\x7f])\s+"
)
_CHINESE_AND = re.compile(r"(?<=[\u4e00-\u9fff]{2})(?:以及|或者|和|与|及|或)(?=[\u4e00-\u9fff]{2})")
_LIST_GOES_ON = re.compile(r"(?<=[\u4e00-\u9fff]{2})等等?$|^(?:etc\.?|等等?)$", re.IGNORECASE)
_PUNCTUATION = re.compile(r"[。！？!?：:（）()《》…“”「」『』\"]")
# A group of words such as 「网络用语」, or the beginning of a sentence that is no word.
_NO_WORD = re.compile(
    r".*(?:词汇|词语|词|用语|语|话|字|句式|句子|表达|描写|内容|的|words?|phrases?|terms?|language"
    r"|slang|clich[eé]s?|adverbs?|adjectives?|jargon)"
    r"|(?:超过|少于|多于|不足|至少|最多|连续|重复|任何|任意|所有|一切|各种|同一|某|这|那|以上|以下|上述"
    r"|下列|一个|第|除).*"
    r"|twice|again|once|often|lightly|alone|here|there|first|last|before|too|it|them|yourself"
    r"|carelessly|sparingly|incorrectly|wrongly",
    re.IGNORECASE,
)
_ENGLISH_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_MOST_WORDS_IN_ITEM = 6
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
    text = constraint.strip()
    if len(text) > LONGEST_CONSTRAINT:
        return None
    for form in _NAMED:
        if match := form.fullmatch(text):
            fields = match.groupdict()
            patterns = [_pattern(item) for item in _ITEMS.finditer(match["items"])]
            return _ban(patterns, whole=not (fields.get("open") or fields.get("such")))
    return _ban_of_bare_words(text)


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
    return _mark_pattern(item[0]) or "" if word is None else word_pattern(word.strip() or word)


def _mark_pattern(name: str) -> str | None:
    marks = _MARKS.items()
    return next((p for names, p in marks if re.fullmatch(names, name, re.IGNORECASE)), None)


def _ban(patterns: list[str], *, whole: bool) -> Ban:
    return Ban(regex.compile("|".join(patterns), regex.IGNORECASE), whole)


def _ban_of_bare_words(text: str) -> Ban | None:
    if match := _HEADED.fullmatch(text):
        return _ban_of_list(match["bare"] or match["english"], _MOST_WORDS_IN_ITEM)
    if match := _ENGLISH_BARE.fullmatch(text):
        return _ban_of_list(match["english"] or match["later"], 1)
    match = _CHINESE_BARE.fullmatch(text)
    if match is None or len(match["bare"]) != _COUNTS.get(match["count"], len(match["bare"])):
        return None
    return _ban_of_list(match["bare"], 1)


def _ban_of_list(text: str, most_words: int) -> Ban | None:
    """Read a list of bare words; None if one of its items may be something else than a word."""
    parts = (part for item in _SEPARATOR.split(text) for part in _CHINESE_AND.split(item))
    items = [item.strip(" “”「」『』\"'") for item in parts if item.strip()]
    words = [word for item in items if (word := _LIST_GOES_ON.sub("", item))]
    if not words or not all(_is_word(word, most_words) for word in words):
        return None
    return _ban([_mark_pattern(word) or word_pattern(word) for word in words], whole=words == items)


def _is_word(item: str, most_words: int) -> bool:
    if len(item) > LONGEST_BARE_WORD or _PUNCTUATION.search(item) or _NO_WORD.fullmatch(item):
        return False
    words = item.split()
    return len(words) <= most_words and all(map(_ENGLISH_WORD.fullmatch, words))
