"""Values that a name gives away: `password=…`, `api_key: …`, `密码：…`, `--token …`, `?sig=…`.

Knows what surrounds a name and its value; how they are joined stands in `joints`, what counts as
a secret's name in `names`, what counts as a value in `shape`.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.joints import LONGEST, REST, joined_in_chinese, joined_in_english
from creonowd.redaction.names import LONGEST_NAME, Strength, strength_of
from creonowd.redaction.rules import NOTHING, Rule, Span
from creonowd.redaction.shape import (
    is_gibberish,
    is_passphrase,
    is_random,
    is_secret,
    is_stand_in,
    is_words,
)
from creonowd.redaction.vocabulary import CHINESE_NAMES, ENGLISH_NAMES

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
    Rule(
        "labelled_secret",
        ENGLISH_NAMES,
        joined_in_english("[A-Za-z0-9_.$-]{2,48}+"),
        _english,
        bounded=False,
        swallows=False,
    ),
    Rule(
        "labelled_secret_zh",
        CHINESE_NAMES,
        joined_in_chinese(
            f"(?:{'|'.join(CHINESE_NAMES)})(?:[ \\t]?(?:key|secret|token|KEY|Key|Token|Secret))?"
        ),
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
