"""Values that a name gives away: `password=…`, `api_key: …`, `密码：…`, `--token …`, `?sig=…`.

Knows what surrounds a name and its value; how they are joined stands in `joints`, what counts as
a secret's name in `names`, what counts as a value in `shape`.
"""

import re
from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache

from creonowd.redaction.rules import NOTHING, RedactionRule, Span
from creonowd.redaction.shape import (
    ABOUT_A_SECRET,
    CHINESE_NAMES,
    ENGLISH_NAMES,
    FAINT_WORDS,
    HEADERS_THAT_HOLD_SECRETS,
    LOCKED_BY_KEY,
    NAME_TAILS,
    OPEN_KINDS,
    PASSWORD_ENDINGS,
    PASSWORD_WORDS,
    SECRET_ENDINGS,
    SECRET_WORDS,
    is_gibberish,
    is_passphrase,
    is_random,
    is_secret,
    is_stand_in,
    is_words,
)

LONGEST = 128

_SPACE = r"[ \t\u3000]"
_CLOSE = r"(?:(?!['’]s\s)[*_`\"”」』】\\\]'’]{1,6}+|&quot;|)"
_BRACKETS = r"(?:[ \t]?[(（][^()（）\n]{0,24}[)）]|[ \t]\[[^\[\]\n]{0,24}\]|)"
_ASIDE = rf"(?>(?=[(（&*_`\"”」』】\\\]'’]|[ \t][(（\[]){_BRACKETS}{_CLOSE}|)"
_FENCE = r"(?:[ \t]{0,8}\r?\n|)(?:[ \t]{0,8}```[a-z]{0,12}\r?\n|)"
_BELOW = rf"[:：](?:\*\*|)[ \t]{{0,4}}(?:[|>][-+]?[ \t]{{0,2}}|)\r?\n{_FENCE}[ \t]{{0,8}}"
_ASSIGN = (
    r"(?:={1,3}>?|:(?:=|(?!//)(?:\*\*|__|))|：(?:\*\*|)|＝|->|→|%3[ADad])" rf"{_SPACE}{{0,16}}"
)
_CELL = r"\|[ \t]{0,16}"
_PAIR = r"(?:[,\r\n]\s{0,16}|)[\"']?value[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
_SET = r"(?:(?:is|was|has been|will be) )?(?:now )?(?:re)?(?:set|changed) to"
_IS = (
    rf"(?:['’]s|(?<=[ \t])(?:{_SET}|is|was))"
    r"(?:[ \t]{0,4}+[:：]?(?:(?<=[ \t])|[ \t]{1,4})|(?=[\"'“]))"
)
_SHI = (
    r"(?:就是|是|(?:已经?|被)?(?:重置|更新|修改|变更|變更|更改|设置|設置|設定|[设設改换換变變])"
    r"(?:成了?|为了?|為)|叫做?|写的是|为|爲|為)[ \t]{0,2}[:：]?[ \t]{0,2}"
)
_JOIN = (
    rf"{_SPACE}{{0,16}}+(?>"
    rf"(?=[=:：＝→%-])(?:(?P<below>{_BELOW})|{_ASSIGN})|{_CELL}|(?P<markup>(?<![ \t])>)"
    rf"|(?=[,\r\nv\"']){_PAIR}|(?=[iw'’]|set|res|has|now|cha|[^\x00-\x7f])(?P<prose>{_IS}|{_SHI})|(?P<space>"
)
_OPEN = r"(?P<open>(?:&quot;|[*_`\"'“‘「『《【\\(\[]{0,6}+))"
_PROMISING_APART = (
    r"(?=[*_`\"'“‘「『《【\\(\[]{0,6}+[a-z._:=()-]{0,15}+[A-Za-z0-9._:=()!@#$%^&*+~?/-])"
)
_PROMISING_JOIN = (
    r"(?=[a-z._:=()-]{0,9}+[A-Za-z0-9._:=()!@#$%^&*+~?/-])"
    r"(?=[A-Za-z._:=()-]{0,7}+[A-Za-z0-9._:=()!@#$%^&*+~?/-])"
    r"(?!(?:pass|pwd|secret|token|key|auth)[a-z._-]{0,16}+[=:]|REDACTED\*\*\*)"
)
_VALUE = (
    r"(?:(?<=\")(?P<double>[!#-\[\]-~]{6,128}+)|(?<=')(?P<single>[!-&(-\[\]-~]{6,128}+)"
    r"|(?P<bare>[!#-&(-;=?-\[\]-_a-{}~]{6,128}+))"
)
REST = {
    "double": re.compile(r"[!#-\[\]-~]*"),
    "single": re.compile(r"[!-&(-\[\]-~]*"),
    "bare": re.compile(r"[!#-%(-+\--:=?-\[\]-_a-{}~]*"),
}
"""How each kind of value goes on if it is longer than `LONGEST`."""

_CLAUSE = r"(?P<clause>(?<=[wW][oO][rR][dD])[ \t](?:for|of)(?:[ \t][\w@.'’-]{1,40}+){1,4}?|)"
_USER = r"(?:[A-Za-z0-9_.@-]{2,40}[ \t]{1,2}/[ \t]{1,2}|)"
_DASH = r"(?:[-–—]{1,2}[ \t]{1,4}|)"
_HAN_DASH = r"(?:[-–—]{1,2}[ \t]{0,4}|)"


def joined_in_english(name: str) -> str:
    """Write the pattern of a name with its value; only a space or dash between them is `space`."""
    apart = rf"(?<=[ \t]){_DASH}{_PROMISING_APART}))"
    return f"(?P<name>{name}){_CLAUSE}{_ASIDE}{_JOIN}{apart}{_OPEN}{_PROMISING_JOIN}{_VALUE}"


def joined_in_chinese(name: str) -> str:
    """Write the same pattern; here nothing at all may stand between them, or a user and a slash."""
    return f"{name}{_ASIDE}{_JOIN}{_HAN_DASH}{_PROMISING_APART})){_USER}{_OPEN}{_PROMISING_JOIN}{_VALUE}"


class Strength(IntEnum):
    """How much a name promises, and so how little its value has to look like a secret."""

    NONE = 0
    WEAK = 1
    SECRET = 2
    PASSWORD = 3


LONGEST_NAME = 96

_PROMISING = FAINT_WORDS.union(SECRET_ENDINGS, PASSWORD_ENDINGS)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")


@lru_cache(maxsize=1024)
def strength_of(name: str) -> Strength:
    """Judge a name by its last word, and a `key` by what it opens."""
    if name.rstrip().endswith(CHINESE_NAMES):
        return Strength.PASSWORD
    words = [word.lower() for word in _WORD.findall(name[-LONGEST_NAME:])]
    while len(words) > 1 and (words[-1].isdigit() or words[-1] in NAME_TAILS):
        words.pop()
    return _judge_name(words) if words else Strength.NONE


def is_secret_name(name: str) -> bool:
    """Tell whether whatever stands under this name has to go."""
    return strength_of(name) >= Strength.SECRET or name.lower().endswith(HEADERS_THAT_HOLD_SECRETS)


def _judge_name(words: list[str]) -> Strength:
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last in ABOUT_A_SECRET:
        return Strength.NONE
    if last.endswith(PASSWORD_ENDINGS) or last in PASSWORD_WORDS:
        return Strength.PASSWORD
    if last == "key" and before in LOCKED_BY_KEY:
        return Strength.SECRET
    if before in OPEN_KINDS:
        return Strength.NONE
    if last.endswith(SECRET_ENDINGS) or last in SECRET_WORDS:
        return Strength.SECRET
    return Strength.NONE if _PROMISING.isdisjoint(words) else Strength.WEAK


_NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
_BEFORE_MARKUP = ("<", 'name="', "name='", 'key="', "key='")
_BEFORE_QUERY = ("?", "&", "#")
_LIST_END = re.compile(r",|;|&(?=[A-Za-z_][\w.-]{0,48}=|[a-z]{2,6};|#)")
_QUERY_END = re.compile(r"[&#,;]")
_DIGITS_AND_MORE = re.compile(r"(?=.*[0-9])(?=.*[^0-9a-fA-F-])")
_SHORTEST_WEAK = 20
_METAL = "钥匙"
_QUOTES = frozenset("`\"'“‘「『《【")


def _english(match: "re.Match[str]") -> Sequence[Span]:
    text, start = match.string, match.start()
    name, clause, markup, space = match.group("name", "clause", "markup", "space")
    head = text[start - LONGEST_NAME if start > LONGEST_NAME else 0 : start]
    apart = head.rstrip(_NAME_CHARS)
    joined = head[len(apart) :]
    strength = _strength(apart, joined + name)
    if strength is Strength.NONE or (markup and not apart.endswith(_BEFORE_MARKUP)):
        return NOTHING
    is_flag = joined.startswith("-")
    if clause and (space is not None or strength is not Strength.PASSWORD):
        return NOTHING
    if space is not None and not _may_stand_apart(match, joined, strength):
        return NOTHING
    return _judge(match, strength, in_query=apart.endswith(_BEFORE_QUERY), is_flag=is_flag)


def _strength(head: str, name: str) -> Strength:
    """Judge a name, together with the word before it: `api` belongs to `key` in `api key`."""
    strength = strength_of(name)
    if strength is Strength.PASSWORD or not head.endswith(" "):
        return strength
    end = head.rstrip(" ")
    return strength_of(f"{end[len(end.rstrip(_NAME_CHARS)) :]} {name}")


def _may_stand_apart(match: "re.Match[str]", joined: str, strength: Strength) -> bool:
    """Allow `--token …`, `password Xy12…`, `set API_KEY …`; `pass` and `key` are also plain words."""
    if strength is Strength.PASSWORD or joined.startswith("-"):
        return True
    if not _QUOTES.isdisjoint(match["open"]):
        return True
    if strength is not Strength.SECRET:
        return False
    return "_" in joined + match["name"] or _is_unmistakable(match[match.lastgroup or "bare"])


def _is_unmistakable(value: str) -> bool:
    return value.isalnum() and not value.isalpha() and is_random(value, _SHORTEST_WEAK)


def _chinese(match: "re.Match[str]") -> Sequence[Span]:
    """Take what a Chinese name announces; a 钥匙 may be of metal, and its value a number."""
    if match[0].startswith(_METAL):
        return _judge(match, Strength.WEAK, in_query=True)
    return _judge(match, Strength.PASSWORD)


def _access_key(match: "re.Match[str]") -> Sequence[Span]:
    return (match.span(1),) if is_random(match[1], 24) else NOTHING


def _judge(
    match: "re.Match[str]", strength: Strength, *, in_query: bool = False, is_flag: bool = False
) -> Sequence[Span]:
    kind = match.lastgroup or "bare"
    start, end = match.span(kind)
    value = match[kind]
    if kind == "bare" and not match["open"].endswith("`"):
        value = _bare(value, in_query=in_query or strength is Strength.WEAK)
    if strength is Strength.WEAK:
        accepted = _is_weakly_named(value, in_query=in_query)
    else:
        accepted = _is_accepted(value, match, is_flag=is_flag, digits=strength is Strength.PASSWORD)
    if not accepted:
        return NOTHING
    if start + len(value) < end or end - start < LONGEST:
        return ((start, start + len(value)),)
    rest = REST[kind].match(match.string, end)
    tail = "" if rest is None else rest[0].rstrip(".:*_" if kind == "bare" else None)
    return ((start, end + len(tail)),)


def _is_accepted(value: str, match: "re.Match[str]", *, is_flag: bool, digits: bool) -> bool:
    below, prose, space, opened = match.group("below", "prose", "space", "open")
    if below:
        return is_random(value, 10) and re.search("[:=]", value.rstrip("=")) is None
    if prose:
        return is_secret(value, digits=True) and (len(value) >= 8 or value.isdigit())
    if space is not None and not is_flag and not opened:
        unsayable = not is_words(value) or re.search(r"[!@#$%^&*]", value)
        return len(value) >= 8 and is_secret(value) and bool(unsayable)
    if value.startswith("sk-"):
        return len(value) >= 12 and not is_stand_in(value)
    return is_secret(value, digits=digits) or (
        digits and (is_gibberish(value) or _is_strung_together(value))
    )


def _is_strung_together(value: str) -> bool:
    """Take `correct-horse-battery-staple`, which has no digit, and no name such as `my-db-password-file`."""
    if not value.islower() or "_" in value or not is_passphrase(value, 4):
        return False
    return strength_of(value) is Strength.NONE and not is_stand_in(value)


def _is_weakly_named(value: str, *, in_query: bool) -> bool:
    """Want more of what stands behind a mere `key`, as hashes and ids stand there too."""
    if in_query:
        return is_random(value, 16)
    return is_random(value, _SHORTEST_WEAK) and _DIGITS_AND_MORE.match(value) is not None


def _bare(value: str, *, in_query: bool) -> str:
    """Cut off what belongs to the sentence, the list or the URL around the value."""
    if value.isalnum():
        return value
    end = (_QUERY_END if in_query else _LIST_END).search(value)
    value = value if end is None else value[: end.start()]
    for opening, closing in ("()", "[]", "{}"):
        if closing in value and opening not in value:
            value = value.split(closing, 1)[0]
    return value.rstrip("*_.:") if value.endswith(("*", "__", ".", ":")) else value


RULES = (
    RedactionRule(
        "labelled_secret",
        ENGLISH_NAMES,
        joined_in_english("[A-Za-z0-9_.$-]{2,48}+"),
        _english,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "labelled_secret_zh",
        CHINESE_NAMES,
        joined_in_chinese(
            f"(?:{'|'.join(CHINESE_NAMES)})(?:[ \\t]?(?:key|secret|token|KEY|Key|Token|Secret))?"
        ),
        _chinese,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "access_key_pair",
        ("ak:", "ak=", "ak：", "sk:", "sk=", "sk："),
        r"[asAS][kK][:=：][ \t]?[\"']?([A-Za-z0-9+/]{24,64}+={0,2})",
        _access_key,
    ),
)
