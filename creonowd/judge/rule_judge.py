"""The judge by rules: what a program finds in an output without asking a model.

A constraint is a ban only if it forbids something everywhere and names beyond doubt what it
forbids. 「避免使用感叹号和省略号」 is one; 「避免使用现代词汇」 and 「对话中不用“忽然”」 are not. The terms of
`.creonow/rules/terminology.json` say which words to avoid. The grammatical person of the narration
is judged by the pronouns outside dialogue, and only where the case is clear: an output with few of
them, or with both persons side by side, is left to a model.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from string import ascii_letters, digits
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from creonowd.errors import Wording
from creonowd.text import has_too_many_values, late_pattern

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
    late_pattern(form + _END, re.IGNORECASE)
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
_HEADED = late_pattern(
    rf"(?:{_TEXT}的?)?(?:禁用|违禁|忌用|避用|禁|(?:禁止|严禁|不得|不要|不可|不能|不许)(?:使用|出现|用)的?"
    rf"|[需要应]?避免(?:使用)?的){_KIND}(?:表|列表|清单)?(?:如下)?[：:]\s*(?P<bare>.+?){_END}"
    r"|(?:(?:the\s+)?(?:banned|forbidden|prohibited|disallowed|taboo|off-limits)\s+"
    rf"{_ENGLISH_KIND}(?:\s+list)?|{_ENGLISH_KIND}\s+(?:to\s+avoid|(?:not|never)\s+to\s+use)"
    rf"|{_ENGLISH_NOT}{_ENGLISH_USE}\s+(?:any\s+of\s+)?(?:the|these)\s+(?:following\s+)?"
    rf"{_ENGLISH_KIND})\s*:\s*(?P<english>.+?){_END}",
    re.IGNORECASE,
)
_CHINESE_BARE = late_pattern(
    rf"{_EVERYWHERE}{_FIRMLY}{_NOT}{_USE}(?P<bare>[\u4e00-\u9fff]{{2,8}}?)"
    r"(?:(?:[这那]一?个?|一个?)词语?|[这那]?(?P<count>[两二三四])个?字|字样)" + _END
)
_ENGLISH_BARE = late_pattern(
    rf"{_ENGLISH_NOT}{_ENGLISH_USE}\s+(?:the|these)\s+(?:words?|terms?)\s+(?P<english>.+?)"
    rf"{_ENGLISH_EVERYWHERE}{_END}"
    r"|the\s+(?:words?|terms?)\s+(?P<later>.+?)"
    rf"{_ENGLISH_FORBIDDEN_LATER}{_ENGLISH_EVERYWHERE}{_END}",
    re.IGNORECASE,
)
_COUNTS = {"两": 2, "二": 2, "三": 3, "四": 4}
_SEPARATOR = late_pattern(
    r"[、，,；;/|]\s*(?:(?:and|or)\s+)?|\s+(?:and|or|nor)\s+|(?<=[^\x00-\x7f])\s+"
)
_CHINESE_AND = late_pattern(
    r"(?<=[\u4e00-\u9fff]{2})(?:以及|或者|和|与|及|或)(?=[\u4e00-\u9fff]{2})"
)
_LIST_GOES_ON = late_pattern(r"(?<=[\u4e00-\u9fff]{2})等等?$|^(?:etc\.?|等等?)$", re.IGNORECASE)
_PUNCTUATION = late_pattern(r"[。！？!?：:（）()《》…“”「」『』\"]")
# A group of words such as 「网络用语」, or the beginning of a sentence that is no word.
_NO_WORD = late_pattern(
    r".*(?:词汇|词语|词|用语|语|话|字|句式|句子|表达|描写|内容|的|words?|phrases?|terms?|language"
    r"|slang|clich[eé]s?|adverbs?|adjectives?|jargon)"
    r"|(?:超过|少于|多于|不足|至少|最多|连续|重复|任何|任意|所有|一切|各种|同一|某|这|那|以上|以下|上述"
    r"|下列|一个|第|除).*"
    r"|twice|again|once|often|lightly|alone|here|there|first|last|before|too|it|them|yourself"
    r"|carelessly|sparingly|incorrectly|wrongly",
    re.IGNORECASE,
)
_ENGLISH_WORD = late_pattern(r"[^\W_]+(?:['’-][^\W_]+)*")
_MOST_WORDS_IN_ITEM = 6
_ITEMS = late_pattern(_ITEM, re.IGNORECASE)


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
            groups = match.groupdict()
            patterns = [_pattern(item) for item in _ITEMS.finditer(match["items"])]
            return _ban(patterns, whole=not (groups.get("open") or groups.get("such")))
    return _ban_of_bare_words(text)


def hits(ban: Ban, text: str) -> Iterator[BannedSpan]:
    """Find every place where a ban is broken."""
    return (BannedSpan(*match.span(), match[0]) for match in ban.pattern.finditer(text))


def word_pattern(word: str) -> str:
    """Return a pattern for a word: in Chinese anywhere, in Latin script not inside another word."""
    import regex

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
    import regex

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


if TYPE_CHECKING:
    import regex
    from ahocorasick_rs import AhoCorasick, BytesAhoCorasick

AVOID_KEYS = ("avoid", "avoids", "forbidden", "banned", "wrong", "deprecated")
PREFERRED_KEYS = ("preferred", "term", "name")

WordPlace = tuple[int, int, int]
"""The number of a word, and where it begins and ends."""

# The only characters beyond ASCII that have an ASCII letter in lower case.
_ALMOST_ASCII = ("\N{KELVIN SIGN}", "\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}")
_LATIN = frozenset(ascii_letters + digits)
_WORD_CHARACTERS = _LATIN | {"_"}
_WORD_BYTES = frozenset("".join(_WORD_CHARACTERS).encode())


class Term(NamedTuple):
    """A word to avoid, and the one to use instead; empty if there is none."""

    avoid: str
    preferred: str = ""

    @property
    def rule(self) -> Wording:
        """The rule in words."""
        if self.preferred:
            return _PREFER.format(self.preferred, self.avoid)
        return _AVOID.format(self.avoid)


_PREFER = Wording("use “{}”, not “{}”", "用「{}」，不用「{}」")
_AVOID = Wording("do not use “{}”", "不用「{}」")


@lru_cache(maxsize=64)
def read_terms(data: bytes) -> tuple[Term, ...] | None:
    """Read the terms to avoid; None if the file is not JSON, or of a shape that prompts leave out."""
    if has_too_many_values(data):
        return None
    try:
        content = msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(content, dict):
        return None
    fields = cast("dict[str, Any]", content)
    entries, banned = fields.get("terms", []), fields.get("banned", [])
    words = cast("list[Any]", banned) if isinstance(banned, list) else [banned]
    if not _all_are(entries, (dict, str)) or not _all_are(words, str):
        return None
    found = (term for entry in cast("list[Any]", entries) for term in _terms(entry))
    return (*map(Term, _words(words)), *found)


def _all_are(values: Any, kind: type | tuple[type, ...]) -> bool:
    listed = cast("list[Any]", values) if isinstance(values, list) else [None]
    return all(isinstance(value, kind) for value in listed)


def _terms(entry: Any) -> Iterator[Term]:
    if not isinstance(entry, dict):
        return
    fields = cast("dict[str, Any]", entry)
    names = [word for key in PREFERRED_KEYS for word in _words(fields.get(key))]
    preferred = names[0] if names else ""
    avoid = [word for key in AVOID_KEYS for word in _words(fields.get(key))]
    if "preferred" in fields:
        avoid += names[1:]
    yield from (Term(word, preferred) for word in avoid if word != preferred)


def _words(value: Any) -> list[str]:
    values = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [word.strip() for word in values if isinstance(word, str) and word.strip()]


def misuses(terms: tuple[Term, ...], text: str, most: int) -> list[tuple[Term, BannedSpan]]:
    """Find the words to avoid, except where they are part of the words to use instead.

    In the order of the terms; of each no more than the first `most`.
    """
    found: dict[int, list[BannedSpan]] = {}
    ends = [0] * len(terms)
    finder, nested = _finder(terms)
    for number, start, end in finder.places(text):
        if start < ends[number]:
            continue
        ends[number] = end
        of_term = found.setdefault(number, [])
        allowed = nested[number] and _is_part_of(terms[number].preferred, text, start, end)
        if not allowed and len(of_term) < most:
            of_term.append(BannedSpan(start, end, text[start:end]))
    return [(terms[number], span) for number in sorted(found) for span in found[number]]


@lru_cache(maxsize=16)
def _finder(terms: tuple[Term, ...]) -> tuple["WordFinder", list[bool]]:
    """Return a finder of the words to avoid, and for each if it may be part of the preferred word."""
    import regex

    nested = [
        regex.search(regex.escape(avoid), preferred, regex.IGNORECASE) is not None
        for avoid, preferred in terms
    ]
    return WordFinder(tuple(term.avoid for term in terms)), nested


def _is_part_of(preferred: str, text: str, start: int, end: int) -> bool:
    """Return whether the text from `start` to `end` lies within the preferred word."""
    size = len(preferred)
    first = max(0, end - size)
    return size >= end - start and text.find(preferred, first, start + size) >= 0


class WordFinder:
    """Finds words of any case, overlapping ones too, in one pass over a text.

    In Chinese a word is found anywhere, in Latin script not inside another word.
    """

    def __init__(self, words: tuple[str, ...]) -> None:
        self._words = words
        self._has_case = any(word.lower() != word.upper() for word in words)
        self._edges = [(word[0] in _LATIN, word[-1] in _LATIN) for word in words]
        beyond = {char for word in words for char in word if not char.isascii()}
        self._only_ascii_has_case = all(char == char.lower() == char.upper() for char in beyond)

    def places(self, text: str) -> list[WordPlace]:
        """List every place where a word stands."""
        if not self._words:
            return []
        almost_ascii = self._has_case and any(char in text for char in _ALMOST_ASCII)
        if self._only_ascii_has_case and not almost_ascii:
            return self._places_in_bytes(text)
        lower = text.lower()
        if len(lower) == len(text):
            found = self._automaton.find_matches_as_indexes(lower, overlapping=True)
        else:
            found = self._places_one_by_one(text)
        return [place for place in found if _stands_alone(text, *place[1:])]

    def _places_in_bytes(self, text: str) -> list[WordPlace]:
        """Search UTF-8, where only ASCII letters have two cases: several times as fast."""
        data = _encode(text)
        lower = data.lower() if self._has_case else data
        found = self._byte_automaton.find_matches_as_indexes(lower, overlapping=True)
        alone = [place for place in found if self._stands_alone_in_bytes(data, place)]
        if not alone or len(data) == len(text):
            return alone
        at = _code_points(data, {start for _, start, _ in alone})
        return [(number, at[s], at[s] + len(self._words[number])) for number, s, _ in alone]

    def _stands_alone_in_bytes(self, data: bytes, place: WordPlace) -> bool:
        number, start, end = place
        first, last = self._edges[number]
        before = first and start > 0 and data[start - 1] in _WORD_BYTES
        return not before and not (last and end < len(data) and data[end] in _WORD_BYTES)

    def _places_one_by_one(self, text: str) -> list[WordPlace]:
        import regex

        return [
            (number, *match.span())
            for number, word in enumerate(self._words)
            for match in regex.finditer(regex.escape(word), text, regex.IGNORECASE)
        ]

    @cached_property
    def _byte_automaton(self) -> "BytesAhoCorasick":
        from ahocorasick_rs import BytesAhoCorasick

        return BytesAhoCorasick([_encode(word.lower()) for word in self._words])

    @cached_property
    def _automaton(self) -> "AhoCorasick":
        from ahocorasick_rs import AhoCorasick

        return AhoCorasick([word.lower() for word in self._words])


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Return whether what begins or ends in Latin script or a digit is no part of a longer word."""
    before = start > 0 and text[start] in _LATIN and text[start - 1] in _WORD_CHARACTERS
    after = end < len(text) and text[end - 1] in _LATIN and text[end] in _WORD_CHARACTERS
    return not before and not after


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _code_points(data: bytes, places: Iterable[int]) -> dict[int, int]:
    """Map places in bytes to places in code points."""
    at: dict[int, int] = {}
    before = count = 0
    for place in sorted(places):
        count += len(data[before:place].decode("utf-8", "surrogatepass"))
        at[place] = count
        before = place
    return at


LONGEST_PERSON_CONSTRAINT = 200
LEAST_EVIDENCE = 3
# The confidence by the number of pronouns; no number makes it 1.
CONFIDENCE = ((12, 0.95), (6, 0.9), (LEAST_EVIDENCE, 0.8))
LONGEST_QUOTE = 200


class Person(StrEnum):
    """Who narrates."""

    FIRST = "first"
    THIRD = "third"


class PersonFound(NamedTuple):
    """The person of a narration, a sentence that has it, and how sure that is."""

    person: Person
    start: int
    end: int
    pronouns: int
    confidence: float


_CHINESE_PERSON = {"一": Person.FIRST, "三": Person.THIRD}
_ENGLISH_PERSON = {
    "first": Person.FIRST,
    "1st": Person.FIRST,
    "third": Person.THIRD,
    "3rd": Person.THIRD,
}
_OTHER = {Person.FIRST: Person.THIRD, Person.THIRD: Person.FIRST}

_NARRATION = "(?:全文|全书|全篇|通篇|本书|本文|正文|小说|作品|故事|叙述|叙事|旁白|视角|人称)"
_CHINESE = late_pattern(
    rf"(?:请?{_NARRATION}?(?:中|里)?[，,：:]?)?(?:请|必须|务必|要|应|应当|严格|始终|一律|全程|坚持|统一|只|只能|均|都)*"
    r"(?P<not>不要|不得|不可以|不可|不能|不许|不准|不|避免|禁止|严禁|禁用|切勿|请勿|别)?"
    r"(?:使用|采用|运用|遵循|遵守|保持|坚持|限于|用|以|为|是|按照?|从|出现)?(?:严格的?)?(?:主角的?|主人公的?)?"
    r"第(?P<person>[一三])人称(?:的)?(?:有限|限知|全知|限制)?(?:的)?"
    r"(?:视角|视点|口吻|角度|方式|叙述视角|叙事视角)?(?:来|进行)?"
    r"(?:叙述|叙事|写作|写|讲述|行文|描写|展开)?(?:故事|全文|正文)?[。.！!；;\s]*"
)
_ENGLISH = late_pattern(
    r"(?:please\s+)?(?:always\s+|only\s+|strictly\s+)?"
    r"(?P<not>(?:do\s+not|don['’]t|never|must\s+not|avoid|no)\s+)?"
    r"(?:(?:use|using|write|writing|narrate|narrating|tell|keep\s+to|stick\s+to|stay|remain|narration|"
    r"the\s+narration\s+(?:is|must\s+be)|told|written)\s+)?(?:the\s+(?:story|novel|text)\s+)?(?:only\s+)?"
    r"(?:in\s+)?(?:the\s+)?(?:strict(?:ly)?\s+)?(?P<person>first|third|1st|3rd)[\s-]person"
    r"(?:[\s-]+(?:limited|omniscient|singular))?(?:\s+(?:narration|narrative|narrator|pov|perspective|voice"
    r"|point\s+of\s+view))?(?:\s+(?:only|throughout|strictly))*[.!;\s]*",
    re.IGNORECASE,
)

_DIALOGUE = late_pattern(
    r"“[^“”\n]*(?:”|$)|「[^「」\n]*(?:」|$)|『[^『』\n]*(?:』|$)|«[^«»\n]*(?:»|$)"
    r'|"[^"\n]*(?:"|$)|‘[^‘\n]*?(?:’(?!\w)|$)'
    r"|(?<!\w)'[^\n]*?(?<=[,.!?…-])'(?!\w)"
    r"|^[ \t\u3000]*(?:#|>|[-–—]).*$",
    re.MULTILINE,
)
_MIND = "(?:暗暗|心里|心中|心想|不禁|忽然|突然|隐约)*(?:想|觉得|知道|感到|感觉|明白|意识到|记得|希望|害怕|后悔|心)"
_FIRST = late_pattern(
    r"(?<![自忘小])(?:我|咱|俺)"
    r"|\b(?:I|me|my|My|mine|myself|we|We|us|our|Our|ours|ourselves)\b"
)
_THIRD = late_pattern(
    rf"(?:她|(?<![其吉利排维])他(?![人乡日国杀山]))(?P<mind>们?{_MIND})?"
    r"|\b(?:[Hh]e|[Ss]he)\b(?P<thought>\s+(?:thought|felt|knew|wondered|reali[sz]ed|remembered|wanted"
    r"|hoped|feared)\b)?"
    r"|\b(?:[Hh]im|[Hh]is|[Hh]er|hers|himself|herself|[Tt]hey|[Tt]hem|[Tt]heir|themselves)\b"
)
_SENTENCE_END = late_pattern(r"[。！？!?\n]|\.(?=\s|$)")


@lru_cache(maxsize=2048)
def forbidden_person(constraint: str) -> Person | None:
    """Return the person that a constraint forbids the narration; None if it is about something else.

    To ask for one is to forbid the other.
    """
    text = constraint.strip()
    if len(text) > LONGEST_PERSON_CONSTRAINT:
        return None
    if match := _CHINESE.fullmatch(text):
        person = _CHINESE_PERSON[match["person"]]
    elif match := _ENGLISH.fullmatch(text):
        person = _ENGLISH_PERSON[match["person"].lower()]
    else:
        return None
    return person if match["not"] else _OTHER[person]


def find_person(text: str, person: Person) -> PersonFound | None:
    """Return where a text is clearly narrated in this person; None if it is not, or not clearly.

    The narrator of a first-person story speaks of others in the third person too, so only a text
    without any first person is clearly in the third. What another person thinks is known only to a
    narrator in the third person, so such a pronoun counts twice.
    """
    narration = _DIALOGUE.sub(lambda match: " " * len(match[0]), text)
    first = list(_FIRST.finditer(narration))
    third = list(_THIRD.finditer(narration))
    if person is Person.THIRD:
        insights = sum(1 for match in third if match["mind"] or match["thought"])
        count = 0 if first else len(third) + insights
        shown = third
    else:
        count = len(first) if len(first) >= len(third) else 0
        shown = first
    if count < LEAST_EVIDENCE:
        return None
    confidence = next(sure for least, sure in CONFIDENCE if count >= least)
    start, end = _sentence(text, shown[0].start())
    return PersonFound(person, start, end, len(shown), confidence)


def _sentence(text: str, place: int) -> tuple[int, int]:
    """Return where the sentence around a place begins and ends; of a long one, a part."""
    start = max((m.end() for m in _SENTENCE_END.finditer(text, 0, place)), default=0)
    start += len(text[start:place]) - len(text[start:place].lstrip())
    start = max(start, place - LONGEST_QUOTE // 2)
    stop = _SENTENCE_END.search(text, place)
    return start, min(len(text) if stop is None else stop.end(), start + LONGEST_QUOTE)
