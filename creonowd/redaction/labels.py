"""Values that a name gives away: `password=…`, `api_key: …`, `密码：…`, `--token …`, `?sig=…`.

Knows how names and values are joined in prose, code and markup; what counts as a secret's name
stands in `names`, what counts as a value in `shape`.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.names import LONGEST_NAME, Strength, strength_of
from creonowd.redaction.rules import NOTHING, Rule, Span
from creonowd.redaction.shape import is_random, is_secret, is_stand_in, is_words
from creonowd.redaction.vocabulary import CHINESE_NAMES, ENGLISH_NAMES

_NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
_ASIDE = r"(?:[ \t]?[(（][^()（）\n]{0,24}[)）])?"
_CLOSE = r"[*_`\"'”’」』】\\\]]{0,6}+"
_OPEN = r"(?P<open>[*_`\"'“‘「『《【\\(\[]{0,6}+)"
_VALUE = r"(?P<value>[!#-&(-;=?-\[\]-_a-{}~]{4,512}+)"
_JOIN = (
    r"(?:(?P<assign>[ \t]{0,8}(?::=|=>|={1,3}|:(?!//)(?:\*\*|__)?|：(?:\*\*)?|＝|->|→)[ \t]{0,16})"
    r"|(?P<pair>[ \t]{0,8},?\s{0,16}[\"']?value[\"']?[ \t]{0,4}[:=][ \t]{0,4})"
    r"|(?P<cell>[ \t]{0,16}\|[ \t]{0,16})"
    r"|(?P<markup>>)"
    r"|(?P<prose>[ \t]{1,2}(?:is|was)(?:[ \t]*[:：]?[ \t]+|(?=[\"'“]))"
    r"|[ \t]{0,2}(?:就是|改为|改成|改成了|设为|设成|设置为|换成|是|为|爲|為)[ \t]{0,2}[:：]?[ \t]{0,2})"
    r"|(?P<space>[ \t]{0,4}))"
)

_SHORTEST_WEAK = 20
_HEX = re.compile(r"[0-9a-fA-F-]+\Z")


def _english(match: "re.Match[str]") -> Sequence[Span]:
    text, start = match.string, match.start()
    head = text[max(0, start - LONGEST_NAME) : start]
    joined = head[len(head.rstrip(_NAME_CHARS)) :]
    words = head[len(head.rstrip(_NAME_CHARS + " ")) :]
    strength = strength_of(f"{words}{match['name']}")
    if strength is Strength.NONE:
        return NOTHING
    before = text[start - len(joined) - 1 : start - len(joined)]
    if match["markup"] and before not in ("<", ""):
        return NOTHING
    flag = joined.startswith("-")
    if match["space"] is not None and not flag and not _may_stand_apart(match, strength):
        return NOTHING
    return _judge(match, strength, in_query=before in ("?", "&"), flag=flag)


def _may_stand_apart(match: "re.Match[str]", strength: Strength) -> bool:
    """Allow `password Xy12…` and `PASSWORD 'xy12'`, but `pass` and `key` are also plain words."""
    compound = (
        "_" in match["name"] or "_" in match.string[max(0, match.start() - 1) : match.start()]
    )
    named = strength is Strength.PASSWORD or (strength is Strength.SECRET and compound)
    return bool(match["space"]) and (named or bool(match["open"]))


def _chinese(match: "re.Match[str]") -> Sequence[Span]:
    return _judge(match, Strength.PASSWORD)


def _judge(
    match: "re.Match[str]", strength: Strength, *, in_query: bool = False, flag: bool = False
) -> Sequence[Span]:
    start, end = match.span("value")
    value = match["value"]
    if not match["open"].endswith(('"', "'", "`")):
        value = _unquoted(value, in_query=in_query or strength is Strength.WEAK)
        end = start + len(value)
    if strength is Strength.WEAK:
        accepted = _is_weakly_labelled(value, in_query=in_query)
    elif match["prose"]:
        accepted = is_secret(value, digits=True) and (len(value) >= 8 or value.isdigit())
    elif match["space"] is not None and not flag and not match["open"]:
        accepted = is_secret(value) and not is_words(value) and len(value) >= 8
    else:
        accepted = is_secret(value, digits=strength is Strength.PASSWORD) or _is_prefixed(value)
    return ((start, end),) if accepted else NOTHING


def _unquoted(value: str, *, in_query: bool) -> str:
    """Cut off what belongs to the sentence, the list or the URL around the value."""
    value = re.split(r"[&#,;]" if in_query else r"[,;]", value, maxsplit=1)[0]
    for opening, closing in ("()", "[]", "{}"):
        if opening not in value:
            value = value.split(closing, 1)[0]
    return value.rstrip(".:*_" if value.endswith(("**", "__", "*", ":", ".")) else ".:")


def _is_weakly_labelled(value: str, *, in_query: bool) -> bool:
    if in_query:
        return is_random(value, 16)
    return is_random(value, _SHORTEST_WEAK) and _HEX.match(value) is None


def _is_prefixed(value: str) -> bool:
    return value.startswith("sk-") and len(value) >= 12 and not is_stand_in(value)


RULES = (
    Rule(
        "labelled_secret",
        ENGLISH_NAMES,
        rf"(?P<name>[A-Za-z0-9_.$-]{{3,48}}+){_ASIDE}{_CLOSE}{_JOIN}{_OPEN}{_VALUE}",
        _english,
        bounded=False,
        swallows=False,
    ),
    Rule(
        "labelled_secret_zh",
        CHINESE_NAMES,
        rf"(?:{'|'.join(CHINESE_NAMES)})(?:[ \t]?(?:key|secret|token|KEY|Key|Token|Secret))?"
        rf"{_ASIDE}{_CLOSE}{_JOIN}{_OPEN}{_VALUE}",
        _chinese,
        bounded=False,
        swallows=False,
    ),
)
