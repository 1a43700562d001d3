r"""How a name and its value are joined: `x=…`, `"x": "…"`, `x is …`, `x：…`, `| x | … |`, `x\n  …`.

Knows marks and verbs of prose, code and markup; knows no name, and of values only what is worth
a judge's look: the patterns are met at every word such as `key`, so they have to fail soon.
"""

import re

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
_PROMISING = (
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
    return f"(?P<name>{name}){_CLAUSE}{_ASIDE}{_JOIN}{apart}{_OPEN}{_PROMISING}{_VALUE}"


def joined_in_chinese(name: str) -> str:
    """Write the same pattern; here nothing at all may stand between them, or a user and a slash."""
    return f"{name}{_ASIDE}{_JOIN}{_HAN_DASH}{_PROMISING_APART})){_USER}{_OPEN}{_PROMISING}{_VALUE}"
