"""Fields: a label or an identifier that names a secret, what joins it to its value, and the value.

`labels` and `passwords` know the joints of settings, code and sentences. Here the name may stand in
any style and language, the joint may be a row of dots or the brace of a macro, and the value may be
quoted as any language or format quotes; in exchange the value must look like a secret.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.labels import password_of_pair
from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule
from creonowd.redaction.secret_names import (
    CHINESE_NAMES,
    FOREIGN_NAMES,
    HAN_LABELS,
    Strength,
    strength_of,
)
from creonowd.redaction.shape import (
    has_digit_and_letter,
    has_sign,
    is_blank,
    is_code_group,
    is_latin,
    is_plain_value,
    is_random,
    is_secret,
    names_a_secret,
    unaccented,
)

LONGEST_IDENTIFIER = 64
LONGEST_FIELD_VALUE = 160

_LATIN = "A-Za-z0-9\u00c0-\u024f"
_NAMES = (
    "serial", "license", "licence", "activation", "registration", "product", "pass", "pw", "pwd", "pswd", "mima", "wifikey", "wlankey", "wifi_key", "wlan_key", "networkkey", "network_key", "wpakey", "wpa_key", "secret", "token", "apikey", "api key", "api-key", "api_key", "psk", *FOREIGN_NAMES,
    *(name for name in CHINESE_NAMES if name != "钥匙"), *HAN_LABELS,
)  # fmt: skip
_OTHER_SCRIPTS = tuple(name.lower() for name in _NAMES if not is_latin(name))
_NAMES_OF_CODES = ("serial", "license", "licence", "activation", "registration", "product")
"""Names behind which a code in groups, as machines write them, is a secret."""
_IDENTIFIER = f"[{_LATIN}\u0400-\u04ff_.$-]"
_IDENTIFIER_BEFORE = re.compile(rf"{_IDENTIFIER}{{1,{LONGEST_IDENTIFIER}}}\Z")
_CLOSE = r"(?:&quot;)?[\"'`*_)\]}”」』】»›>\\]{0,8}"
_ASIDE = r"(?:[ ]?(?:\([^()\n]{1,40}\)|（[^（）\n]{1,40}）|\[[^\[\]\n]{1,40}\])){0,2}"
_LEADERS = r"[ \t]{0,4}(?:(?:[.…·・_~][ ]?){3,60}|…|(?:-[ ]?){4,60})[ ]?[:：]?"
_JOINT = (
    rf"(?:(?P<leaders>{_LEADERS})|(?P<macro>(?:\}}[ ]?)?\{{)|(?P<form>\"\r?\n(?:[A-Za-z-]{{3,24}}:[^\n]{{0,80}}\r?\n)?\r?\n)"
    r"|(?P<assign>\.?[ \t\u3000]{0,24}(?:={1,3}>?|:=?(?![/:])|[：＝→⇒⟶➜➔»›~·•]|[-=]>|👉|➡\ufe0f?|[–—](?=[ ])))"
    r"|(?P<argument>(?<=[\"'])[ ]?,))"
    r"[ \t\u3000]{0,24}(?:\(\s{0,16})?"
)
_STRING = re.compile(
    r"(?:[ubrUBR@$]{0,2}(?P<slashes>\\{0,15})(?P<quote>&quot;|&#34;|[\"'`]))|(?P<open>[“‘„«‹「『《【])"
)
_CLOSING = {
    "“": "”", "‘": "’", "„": "“”", "«": "»", "‹": "›", "「": "」", "『": "』", "《": "》", "【": "】"
}  # fmt: skip
_BARE = re.compile(rf"(?:[!-~\u00c0-\u024f]){{4,{LONGEST_FIELD_VALUE}}}+")
_UNTIL = re.compile(
    r"&(?=[A-Za-z_]\w{0,24}=)|\\(?:[nrt]|\W|\Z)|[,;]\Z|[,;](?=[\"'A-Za-z])|%26|&quot;|<"
)
_OPENED_BY = {")": "(", "]": "[", "}": "{", ">": "<"}
_LETTERS_JOINED = re.compile(r"[A-Za-z]+[_.!&#*+$%^~-][A-Za-z]+(?:[_.!&#*+$%^~-][A-Za-z]+){0,3}\Z")
_MAY_NAME_VALUE = re.compile(
    r"(?:\A|[\n,;|/(（，；、\t])[ \t>*•\"'-]{0,8}\Z|(?:user(?:name)?|login|id|u|mail|account|usr)[ \t:=]{1,3}[^\s,;]{1,40}[ ]{1,3}\Z",
    re.IGNORECASE,
)
"""What stands before `pass` where it is no plain word."""
_CASES = re.compile("[a-z].*[A-Z]|[A-Z].*[a-z]")
_OWNER_BEFORE = re.compile(r"[A-Za-z]{2,16} \Z")


def _field(match: "re.Match[str]") -> Sequence[MatchSpan]:
    strength = _strength(match)
    is_code = strength < Strength.SECRET and match["name"].lower().startswith(_NAMES_OF_CODES)
    if strength < Strength.SECRET and not is_code:
        return NOTHING
    first, last, quoted = _value_span(match.string, match.end(), macro=match["macro"] is not None)
    value = match.string[first:last]
    head = match.string[max(0, match.start() - LONGEST_IDENTIFIER) : match.start()]
    if password_of_pair(head, match.string, first):
        return NOTHING
    if not quoted and value.count("/") == 1 and match.string[max(0, match.start() - 1)] == "/":
        return NOTHING
    if len(value) < 4 or not is_latin(value) or is_blank(value):
        return NOTHING
    if is_code:
        is_taken = is_code_group(value)
    elif match["form"]:
        is_taken = is_plain_value(value)
    else:
        plain = unaccented(value)
        is_taken = _is_password(plain, quoted=quoted) and (
            strength is not Strength.SECRET or _is_key(plain)
        )
    return ((first, last),) if is_taken else NOTHING


def _strength(match: "re.Match[str]") -> Strength:
    """Return the strength of the whole identifier, with the word before it if this owns a key."""
    text, start = match.string, match.start()
    name = match["name"]
    first = max(0, start - LONGEST_IDENTIFIER)
    before = _IDENTIFIER_BEFORE.search(text, first, start)
    own = (before[0] if before else "") + name
    strength = strength_of(own)
    begin = start + len(name) - len(own)
    if match["macro"] and text[max(0, begin - 1) : begin] != "\\":
        return Strength.NONE
    if match["form"] and not text.endswith(
        ('name="' + own, "name='" + own), first, match.end("name")
    ):
        return Strength.NONE
    if match["argument"] and not own.isupper() and "_" not in own and "." not in own:
        return Strength.NONE
    if _is_label(name) and strength < Strength.SECRET:
        return Strength.PASSWORD if _is_password_name(name) else Strength.SECRET
    if own.lower() in {"pass", "pw"} and match["assign"] is not None:
        line = text[max(0, start - LONGEST_IDENTIFIER) : start]
        return Strength.PASSWORD if _MAY_NAME_VALUE.search(line) else Strength.NONE
    owner = _OWNER_BEFORE.search(text, max(0, start - 20), start)
    if strength < Strength.SECRET and owner is not None:
        strength = strength_of(owner[0] + own)
    return strength


def _is_label(name: str) -> bool:
    """Return whether a name is in no Latin script, so that it cannot be part of another word."""
    return not is_latin(name) and name.lower().startswith(_OTHER_SCRIPTS)


def _is_password_name(name: str) -> bool:
    bare = name.partition("_")[0]
    return bare.endswith(HAN_LABELS) or bare.lower() in FOREIGN_NAMES


def _value_span(text: str, start: int, *, macro: bool) -> tuple[int, int, bool]:
    """Find the value at a place: between quotes of any kind, in braces, or up to a blank."""
    if macro:
        end = text.find("}", start, start + LONGEST_FIELD_VALUE)
        return start, max(start, end), True
    string = _STRING.match(text, start)
    if string is None:
        bare = _BARE.match(text, start)
        if bare is None:
            return start, start, False
        cut = _UNTIL.search(bare[0])
        value = bare[0] if cut is None else bare[0][: cut.start()]
        return start, start + len(_without_closing(value)), False
    first = string.end()
    end = _end_of_string(text, first, string)
    return (first, end, True) if end > first else (start, start, False)


def _without_closing(value: str) -> str:
    """Cut off the marks of the sentence around a value, and brackets that were opened before it."""
    while value and (
        value[-1] in ".,;:!?*`\"'" or (value[-1] in ")]}>" and _OPENED_BY[value[-1]] not in value)
    ):
        value = value[:-1]
    return value


def _end_of_string(text: str, first: int, string: "re.Match[str]") -> int:
    """Find where a string ends; inside of another one, its quotes have as many backslashes again."""
    limit = min(len(text), first + LONGEST_FIELD_VALUE)
    line = text.find("\n", first, limit)
    limit = limit if line < 0 else line
    if string["open"]:
        ends = [
            at for sign in _CLOSING[string["open"]] if (at := text.find(sign, first, limit)) > 0
        ]
        return min(ends, default=-1)
    closing, place = string["slashes"] + string["quote"], first
    while (end := text.find(closing, place, limit)) >= 0:
        slashes = end - len(text[first:end].rstrip("\\")) - first
        if not slashes or (string["slashes"] and slashes % 2 == 0) or string["quote"][0] == "&":
            return end
        place = end + len(closing)
    return -1


def _is_password(value: str, *, quoted: bool) -> bool:
    if value.isdigit() or not is_plain_value(value, code=not quoted):
        return False
    if " " in value:
        return quoted and _is_odd(value) and value.count(" ") <= 4
    return _is_odd(value) or _is_joined(value)


def _is_joined(value: str) -> bool:
    """Return whether words in both cases stand around a sign, as in `Otter_Holt`."""
    is_joined = _LETTERS_JOINED.match(value) is not None and _CASES.search(value) is not None
    return is_joined and "." not in value and not names_a_secret(value)


def _is_odd(value: str) -> bool:
    return has_digit_and_letter(value) or (has_sign(value) and len(value) >= 6)


def _is_key(value: str) -> bool:
    return (
        is_secret(value)
        or is_random(value, 10)
        or (has_sign(value) and has_digit_and_letter(value))
    )


def _rule(names: Sequence[str], name: str) -> RedactionRule:
    return RedactionRule(
        "labelled_password",
        tuple(dict.fromkeys(map(str.lower, names))),
        rf"{name}{_CLOSE}{_ASIDE}{_CLOSE}{_JOINT}",
        _field,
        bounded=False,
        swallows=False,
        names=True,
    )


def _any_of(names: Sequence[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_WORDS = tuple(name for name in _NAMES if re.fullmatch(f"{_IDENTIFIER}+", name))
_LABELS = tuple(name for name in _NAMES if name not in _WORDS)

RULES = (
    _rule(_WORDS, rf"(?P<name>(?>{_IDENTIFIER}{{2,{LONGEST_IDENTIFIER}}}(?<![.-])))"),
    _rule(_LABELS, rf"(?P<name>(?iu:{_any_of(_LABELS)})(?:_(?u:\w){{1,24}}|s\b)?)"),
)
