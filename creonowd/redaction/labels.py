"""Values that a name gives away: `password=…`, `api_key: …`, `密码：…`, `--token …`, `?sig=…`.

Knows how names and values are joined in prose, code and markup; what counts as a secret's name
stands in `names`, what counts as a value in `shape`.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.names import LONGEST_NAME, Strength, strength_of
from creonowd.redaction.rules import NOTHING, Rule, Span
from creonowd.redaction.shape import is_passphrase, is_random, is_secret, is_stand_in, is_words
from creonowd.redaction.vocabulary import CHINESE_NAMES, ENGLISH_NAMES

_NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
_ASIDE = r"(?:[ \t]?[(（][^()（）\n]{0,24}[)）]|)"
_CLOSE = r"(?:(?!['’]s\s)[*_`\"”」』】\\\]'’]{1,6}+|)"
_BELOW = r"[:：](?:\*\*|)[ \t]{0,4}(?:[|>][-+]?[ \t]{0,2}|)\r?\n[ \t]{0,8}"
_ASSIGN = r"(?:={1,3}>?|:(?:=|(?!//)(?:\*\*|__|))|：(?:\*\*|)|＝|->|→)[ \t]{0,16}"
_CELL = r"\|[ \t]{0,16}"
_PAIR = r"(?:[,\r\n]\s{0,16}|)[\"']?value[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
_IS = r"(?:['’]s|(?<=[ \t])(?:is|was))(?:[ \t]{0,4}+[:：]?(?:(?<=[ \t])|[ \t]{1,4})|(?=[\"'“]))"
_SHI = r"(?:就是|改[为為]|改成了?|[设設][为為成]|设置为|設[定置]為|[换換]成|是|为|爲|為)[ \t]{0,2}[:：]?[ \t]{0,2}"
_JOIN = (
    r"[ \t]{0,16}+(?>"
    rf"(?=[=:：＝→-])(?:(?P<below>{_BELOW})|{_ASSIGN})|{_CELL}|(?P<markup>(?<![ \t])>)|(?=[,\r\nv\"']){_PAIR}"
    rf"|(?=[iw'’就改设設换換是为爲為])(?P<prose>{_IS}|{_SHI})|(?P<space>"
)
_OPEN = r"(?P<open>[*_`\"'“‘「『《【\\(\[]{0,6}+)"
_PROMISING = (
    r"(?=[a-z._:=()-]{0,15}+[A-Za-z0-9._:=()!@#$%^&*+~?/-])"
    r"(?=[A-Za-z._:=()-]{0,7}+[A-Za-z0-9._:=()!@#$%^&*+~?/-])"
    r"(?!(?:pass|pwd|secret|token|key|auth)[a-z._-]{0,16}+[=:]|REDACTED\*\*\*)"
)
_LONGEST = 128
_VALUE = (
    r"(?:(?<=\")(?P<double>[!#-\[\]-~]{6,128}+)|(?<=')(?P<single>[!-&(-\[\]-~]{6,128}+)"
    r"|(?P<bare>[!#-&(-;=?-\[\]-_a-{}~]{6,128}+))"
)
_REST = {
    "double": re.compile(r"[!#-\[\]-~]*"),
    "single": re.compile(r"[!-&(-\[\]-~]*"),
    "bare": re.compile(r"[!#-%(-+\--:=?-\[\]-_a-{}~]*"),
}
_LIST_END = re.compile(r",|;|&(?=[A-Za-z_][\w.-]{0,48}=)")
_QUERY_END = re.compile(r"[&#,;]")
_DIGITS_AND_MORE = re.compile(r"(?=.*[0-9])(?=.*[^0-9a-fA-F-])")
_SHORTEST_WEAK = 20


def _english(match: "re.Match[str]") -> Sequence[Span]:
    text, start = match.string, match.start()
    name, markup, space, opened = match.group("name", "markup", "space", "open")
    head = text[start - LONGEST_NAME if start > LONGEST_NAME else 0 : start]
    apart = head.rstrip(_NAME_CHARS)
    joined = head[len(apart) :]
    strength = _strength(apart, joined + name)
    if strength is Strength.NONE or (markup and not apart.endswith("<")):
        return NOTHING
    is_flag = joined.startswith("-")
    if space is not None and not (is_flag or opened or _may_stand_apart(joined + name, strength)):
        return NOTHING
    return _judge(match, strength, in_query=apart.endswith(("?", "&", "#")), is_flag=is_flag)


def _strength(head: str, name: str) -> Strength:
    """Judge a name, together with the word before it: `api` belongs to `key` in `api key`."""
    strength = strength_of(name)
    if strength is Strength.PASSWORD or not head.endswith(" "):
        return strength
    end = head.rstrip(" ")
    return strength_of(f"{end[len(end.rstrip(_NAME_CHARS)) :]} {name}")


def _may_stand_apart(name: str, strength: Strength) -> bool:
    """Allow `password Xy12…` and `set API_KEY …`; `pass` and `key` are also plain words."""
    return strength is Strength.PASSWORD or (strength is Strength.SECRET and "_" in name)


def _chinese(match: "re.Match[str]") -> Sequence[Span]:
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
    if start + len(value) < end or end - start < _LONGEST:
        return ((start, start + len(value)),)
    rest = _REST[kind].match(match.string, end)
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
    return is_secret(value, digits=digits) or (digits and _is_strung_together(value))


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
    Rule(
        "labelled_secret",
        ENGLISH_NAMES,
        rf"(?P<name>[A-Za-z0-9_.$-]{{3,48}}+){_ASIDE}{_CLOSE}{_JOIN}(?<=[ \t])))"
        rf"{_OPEN}{_PROMISING}{_VALUE}",
        _english,
        bounded=False,
        swallows=False,
    ),
    Rule(
        "labelled_secret_zh",
        CHINESE_NAMES,
        rf"(?:{'|'.join(CHINESE_NAMES)})(?:[ \t]?(?:key|secret|token|KEY|Key|Token|Secret))?"
        rf"{_ASIDE}{_CLOSE}{_JOIN})){_OPEN}{_PROMISING}{_VALUE}",
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
