"""Values that a name gives away: `password=…`, `api_key: …`, `密码：…`, `--token …`, `?sig=…`.

Knows how names and values are joined in prose, code and markup; what counts as a secret's name
stands in `names`, what counts as a value in `shape`.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from creonowd.redaction.names import LONGEST_NAME, Strength, strength_of
from creonowd.redaction.rules import NOTHING, Rule, Span
from creonowd.redaction.shape import is_passphrase, is_random, is_secret, is_stand_in, is_words
from creonowd.redaction.vocabulary import CHINESE_NAMES, ENGLISH_NAMES

_NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
_ASIDE = r"(?:[ \t]?[(（][^()（）\n]{0,24}[)）])?"
_CLOSE = r"(?:[*_`\"”」』】\\\]]|['’](?!s\s)){0,6}+"
_ASSIGN = r"[ \t]{0,8}(?::=|=>|={1,3}|:(?!//)(?:\*\*|__)?|：(?:\*\*)?|＝|->|→)[ \t]{0,16}"
_PAIR = r"[ \t]{0,8},?\s{0,16}[\"']?value[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
_CELL = r"[ \t]{0,16}\|[ \t]{0,16}"
_IS = r"(?:['’]s|[ \t]{1,2}(?:is|was))(?:[ \t]*[:：]?[ \t]+|(?=[\"'“]))"
_SHI = r"[ \t]{0,2}(?:就是|改[为為]|改成了?|[设設][为為成]|设置为|設[定置]為|[换換]成|是|为|爲|為)[ \t]{0,2}[:：]?[ \t]{0,2}"
_BELOW = r"[:：](?:\*\*)?[ \t]{0,4}(?:[|>][-+]?[ \t]{0,2})?\r?\n[ \t]{0,8}"
_JOIN = rf"(?>(?P<below>{_BELOW})|{_ASSIGN}|{_PAIR}|{_CELL}|(?P<markup>>)|(?P<prose>{_IS}|{_SHI})|(?P<space>"
_OPEN = r"(?P<open>[*_`\"'“‘「『《【\\(\[]{0,6}+)"
_PROMISING = (
    r"(?!(?:pass|pwd|secret|token|key|auth)[a-z]{0,8}[=:])"
    r"(?=[a-z._:=()-]{16}|[a-z._:=()-]{0,64}+[A-Z0-9!@#$%^&*+~?/])"
)
_VALUE = (
    r"(?:(?<=\")(?P<double>[!#-\[\]-~]{6,128}+)|(?<=')(?P<single>[!-&(-\[\]-~]{6,128}+)"
    r"|(?P<bare>[!#-&(-;=?-\[\]-_a-{}~]{6,128}+))"
)
_REST = {
    "double": re.compile(r"[!#-\[\]-~]*"),
    "single": re.compile(r"[!-&(-\[\]-~]*"),
    "bare": re.compile(r"[!#-%(-+\--:=?-\[\]-_a-{}~]*"),
}
_LIST_END = re.compile(r"[,;]|&(?=[A-Za-z_][\w.-]{0,48}=)")
_QUERY_END = re.compile(r"[&#,;]")
_DIGITS_AND_MORE = re.compile(r"(?=.*[0-9])(?=.*[^0-9a-fA-F-])")
_SHORTEST_WEAK = 20


class _Setting(NamedTuple):
    """What surrounds a value."""

    strength: Strength
    in_query: bool = False
    is_flag: bool = False


def _english(match: "re.Match[str]") -> Sequence[Span]:
    text, start = match.string, match.start()
    head = text[max(0, start - LONGEST_NAME) : start]
    words = head[len(head.rstrip(_NAME_CHARS + " ")) :]
    strength = strength_of(f"{words}{match['name']}")
    if strength is Strength.NONE:
        return NOTHING
    joined = head[len(head.rstrip(_NAME_CHARS)) :]
    before = head[: len(head) - len(joined)][-1:]
    if match["markup"] and before != "<":
        return NOTHING
    setting = _Setting(strength, before in ("?", "&", "#"), joined.startswith("-"))
    if match["space"] and not _may_stand_apart(match, setting):
        return NOTHING
    return _judge(match, setting)


def _may_stand_apart(match: "re.Match[str]", setting: _Setting) -> bool:
    """Allow `password Xy12…`, `set API_KEY …` and quotes; `pass` and `key` are also plain words."""
    if setting.is_flag or setting.strength is Strength.PASSWORD or match["open"]:
        return True
    compound = "_" in match["name"] or match.string[max(0, match.start() - 1)] == "_"
    return setting.strength is Strength.SECRET and compound


def _chinese(match: "re.Match[str]") -> Sequence[Span]:
    return _judge(match, _Setting(Strength.PASSWORD))


def _access_key(match: "re.Match[str]") -> Sequence[Span]:
    return (match.span(1),) if is_random(match[1], 24) else NOTHING


def _judge(match: "re.Match[str]", setting: _Setting) -> Sequence[Span]:
    kind = match.lastgroup or "bare"
    start, end = match.span(kind)
    value = match[kind]
    if kind == "bare" and not match["open"].endswith("`"):
        value = _bare(value, in_query=setting.in_query or setting.strength is Strength.WEAK)
    if not _is_accepted(value, match, setting):
        return NOTHING
    if start + len(value) < end:
        return ((start, start + len(value)),)
    rest = _REST[kind].match(match.string, end)
    tail = "" if rest is None else rest[0].rstrip(".:*_" if kind == "bare" else None)
    return ((start, end + len(tail)),)


def _is_accepted(value: str, match: "re.Match[str]", setting: _Setting) -> bool:
    if setting.strength is Strength.WEAK:
        return _is_weakly_named(value, in_query=setting.in_query)
    if match["below"]:
        return is_random(value, 10) and re.search("[:=]", value.rstrip("=")) is None
    if match["prose"]:
        return is_secret(value, digits=True) and (len(value) >= 8 or value.isdigit())
    if match["space"] is not None and not setting.is_flag and not match["open"]:
        unsayable = not is_words(value) or re.search(r"[!@#$%^&*]", value)
        return len(value) >= 8 and is_secret(value) and bool(unsayable)
    if value.startswith("sk-"):
        return len(value) >= 12 and not is_stand_in(value)
    password = setting.strength is Strength.PASSWORD
    return is_secret(value, digits=password) or (password and _is_strung_together(value))


def _is_strung_together(value: str) -> bool:
    """Take `correct-horse-battery-staple`, which has no digit, and no name such as `my-db-password-file`."""
    named = strength_of(value) is not Strength.NONE or is_stand_in(value)
    return value.islower() and "_" not in value and is_passphrase(value, 4) and not named


def _is_weakly_named(value: str, *, in_query: bool) -> bool:
    """Want more of what stands behind a mere `key`, as hashes and ids stand there too."""
    if in_query:
        return is_random(value, 16)
    return is_random(value, _SHORTEST_WEAK) and _DIGITS_AND_MORE.match(value) is not None


def _bare(value: str, *, in_query: bool) -> str:
    """Cut off what belongs to the sentence, the list or the URL around the value."""
    end = (_QUERY_END if in_query else _LIST_END).search(value)
    value = value if end is None else value[: end.start()]
    for opening, closing in ("()", "[]", "{}"):
        if closing in value and opening not in value:
            value = value.split(closing, 1)[0]
    return value.rstrip("*_.:") if value.endswith(("*", "__", ".", ":")) else value


RULES = (
    Rule(
        "labelled_secret",
        ENGLISH_NAMES,
        rf"(?P<name>[A-Za-z0-9_.$-]{{3,48}}+){_ASIDE}{_CLOSE}{_JOIN}[ \t]{{1,4}}))"
        rf"{_OPEN}{_PROMISING}{_VALUE}",
        _english,
        bounded=False,
        swallows=False,
        looks_back=LONGEST_NAME,
    ),
    Rule(
        "labelled_secret_zh",
        CHINESE_NAMES,
        rf"(?:{'|'.join(CHINESE_NAMES)})(?:[ \t]?(?:key|secret|token|KEY|Key|Token|Secret))?"
        rf"{_ASIDE}{_CLOSE}{_JOIN}[ \t]{{0,4}})){_OPEN}{_PROMISING}{_VALUE}",
        _chinese,
        bounded=False,
        swallows=False,
    ),
    Rule(
        "access_key_pair",
        ("ak:", "ak=", "ak：", "sk:", "sk=", "sk："),
        r"[asAS][kK][:=：][ \t]?[\"']?([A-Za-z0-9+/]{24,64}+={0,2})",
        _access_key,
    ),
)
