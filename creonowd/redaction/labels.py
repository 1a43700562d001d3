"""Secrets after a name: `password=…`, `api_key: …`, `密码：…`, `--token …`, `?sig=…`.

First the names, then the patterns that join a name and its value, then the judges; `shape` says
what a value looks like. Then come three more kinds of labels:

- of a user and a password together, of whose values only the second is secret: `login/password: bob / …`;
- fields, whose name may stand in any style and language, whose joint may be a row of dots or the
  brace of a macro, and whose value may be quoted as any language quotes; in exchange the value must
  look like a secret;
- spaced out, hyphenated or broken by markup: `P A S S W O R D`, `pass-⏎word`, 【密　码】. A passage with
  such a label is repaired and read by the rules for whole ones.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from creonowd.redaction.rules import (
    NOTHING,
    PLACEHOLDER,
    MatchSpan,
    RedactionRule,
    Scanner,
    make_scanner,
    scan,
)
from creonowd.redaction.secret_names import (
    CHINESE_NAMES,
    FOREIGN_NAMES,
    HAN_LABELS,
    LONGEST_NAME,
    Strength,
    strength_of,
)
from creonowd.redaction.shape import (
    Oddity,
    has_all_kinds,
    has_digit_and_letter,
    has_mixture,
    has_sign,
    is_blank,
    is_code_group,
    is_gibberish,
    is_latin,
    is_passphrase,
    is_plain_value,
    is_random,
    is_secret,
    is_stand_in,
    is_words,
    names_a_secret,
    oddity,
    unaccented,
)

ENGLISH_NAMES = (
    "pass", "pwd", "secret", "token", "key", "credential", "creds", "auth", "sig", "jwt",
    "kennwort", "totp", "_cle=", "_cle:", "_cle ", "clave", "schluessel", "chave", "mdp", "senha", "contrasena", "pw:", "pw=", "pw：", 'pw"', "pw'",
)  # fmt: skip

LONGEST_VALUE = 128

_SPACE = r"[ \t\u3000]"
_CLOSE = r"(?:(?!['’]s\s)[*_`\"”」』】\\\]'’]{1,6}+|&quot;|)"
_BRACKETS = r"(?:[ \t]?[(（][^()（）\n]{0,24}[)）]|[ \t]\[[^\[\]\n]{0,24}\]|)"
_ASIDE = rf"(?>(?=[(（&*_`\"”」』】\\\]'’]|[ \t][(（\[]){_BRACKETS}{_CLOSE}|)"
_FENCE = r"(?:[ \t]{0,8}\r?\n|)(?:[ \t]{0,8}```[a-z]{0,12}\r?\n|)"
_BELOW = rf"[:：](?:\*\*|)[ \t]{{0,4}}(?:[|>][-+]?[ \t]{{0,2}}|)\r?\n{_FENCE}[ \t]{{0,8}}"
_ASSIGN = (
    r"(?:={1,3}>?|:(?:=|[ ]?&?[A-Za-z][\w.<>]{1,20}[ ]=[ ]?|(?!//)(?:\*\*|__|))|：(?:\*\*|)|＝|->|→|%3[ADad])"
    rf"{_SPACE}{{0,16}}"
    r"(?:\(\s{1,16}(?=[\"'])|)"
)
_CELL = r"[|｜][ \t]{0,16}"
_PAIR = r"(?:[,\r\n]\s{0,16}|)[\"']?value[\"']?[ \t]{0,4}[:=][ \t]{0,4}"
_SET = r"(?:(?:is|was|has been|will be) )?(?:now )?(?:re)?(?:set|changed) to"
_IS = (
    rf"(?:['’]s|(?<=[ \t])(?:{_SET}|is|was))"
    r"(?:[ \t]{0,4}+[:：]?(?:(?<=[ \t])|[ \t]{1,4})|(?=[\"'“]))"
)
_SHI = (
    r"(?:就是|是|係|は|が|を|는|은|를|을|(?:已经?|被)?(?:重置|更新|修改|变更|變更|更改|设置|設置|設定|[设設改换換变變])"
    r"(?:成了?|为了?|為)|叫做?|写的是|为|爲|為)[ \t]{0,2}[:：]?[ \t]{0,2}"
)
_JOIN = (
    rf"{_SPACE}{{0,16}}+(?>"
    rf"(?=[=:：＝→%-])(?:(?P<below>{_BELOW})|{_ASSIGN})|{_CELL}|(?P<markup>(?<![ \t])>)"
    rf"|(?=[,\r\nv\"'])(?P<pair>{_PAIR})|(?=[iw'’]|set|res|has|now|cha|[^\x00-\x7f])(?P<prose>{_IS}|{_SHI})|(?P<space>"
)
_OPEN = r"(?P<open>(?:&quot;|[*_`\"'“‘「『《【\\(\[]{0,6}+))"
_VALUE_AHEAD = r"(?=[*_`\"'“‘「『《【\\(\[]{0,6}+[a-z._:=()-]{0,15}+[A-Za-z0-9._:=()!@#$%^&*+~?/-])"
_VALUE_LIKELY = (
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
"""How each kind of value continues if it is longer than `LONGEST_VALUE`."""

_CLAUSE = r"(?P<clause>(?<=[wW][oO][rR][dD])[ \t](?:for|of)(?:[ \t][\w@.'’-]{1,40}+){1,4}?|)"
_USER = r"(?:[A-Za-z0-9_.@-]{2,40}[ \t]{1,2}/[ \t]{1,2}|)"
_DASH = r"(?:[-–—]{1,2}[ \t]{1,4}|)"
_HAN_DASH = r"(?:[-–—]{1,2}[ \t]{0,4}|)"
# `password=token=…`: the second name has the value. Seen at once, this costs half as much.
_NO_CHAIN = r"(?![a-z]{3,12}[=:](?:pass|pwd|secret|token|key)[a-z]{0,8}[=:])"

_NAME_CHARS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-"
_BEFORE_MARKUP = ("<", 'name="', "name='", 'key="', "key='")
_BEFORE_QUERY = ("?", "&", "#")
_LIST_END = re.compile(r",|;|&(?=[A-Za-z_][\w.-]{0,48}=|[a-z]{2,6};|#)")
_QUERY_END = re.compile(r"[&#,;]")
_DIGITS_AND_MORE = re.compile(r"(?=.*[0-9])(?=.*[^0-9a-fA-F-])")
_HEX = re.compile(r"[0-9a-f]{24,128}\Z")
_SHORTEST_WEAK = 20
_LONGEST_HASH_OF_KEY = 40
_WIDE_GAP = re.compile("\u3000|\t|[ ]{2}")
_METAL_KEY = "钥匙"
_SIGNING_NAMES = (
    "jwtsecret",
    "secretkey",
    "sessionsecret",
    "cookiesecret",
    "appsecret",
    "signingkey",
)
_QUOTES = frozenset("`\"'“‘「『《【")


def _english_pair(name: str) -> str:
    """Write the pattern of a name and its value; `space`: only a space or dash is between them."""
    apart = rf"(?<=[ \t\u3000]){_DASH}{_VALUE_AHEAD}))"
    return (
        f"{_NO_CHAIN}(?P<name>{name}){_CLAUSE}{_ASIDE}{_JOIN}{apart}{_OPEN}{_VALUE_LIKELY}{_VALUE}"
    )


def _chinese_pair(name: str) -> str:
    """Write the same pattern; here nothing may stand between them, or a user and a slash."""
    return f"{name}{_ASIDE}{_JOIN}{_HAN_DASH}{_VALUE_AHEAD})){_USER}{_OPEN}{_VALUE_LIKELY}{_VALUE}"


def _english(match: "re.Match[str]") -> Sequence[MatchSpan]:
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
    if strength is Strength.WEAK and _is_hex_key(match, joined + name):
        return (match.span(match.lastgroup or "bare"),)
    return _judge(match, strength, in_query=apart.endswith(_BEFORE_QUERY), is_flag=is_flag)


def _is_hex_key(match: "re.Match[str]", name: str) -> bool:
    """Take hexadecimal digits only as the value of a name such as `cloudflare_key`: hashes have no owner."""
    value = match[match.lastgroup or "bare"]
    is_owned = re.search(r"[a-z][_-]key\Z|[a-z]Key\Z|[A-Z]_KEY\Z", name) is not None
    return is_owned and _HEX.match(value) is not None and has_mixture(value)


def _strength(head: str, name: str) -> Strength:
    """Return the strength of a name with the word before it: `api` belongs to `key` in `api key`."""
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
    value = match[match.lastgroup or "bare"]
    if (match["space"].strip() or _WIDE_GAP.search(match[0])) and is_random(value, 12):
        return True
    return "_" in joined + match["name"] or _is_unmistakable(value)


def _is_unmistakable(value: str) -> bool:
    return value.isalnum() and not value.isalpha() and is_random(value, _SHORTEST_WEAK)


def _chinese(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of a Chinese name; a 钥匙 may be of metal, and its value a number."""
    if match[0].startswith(_METAL_KEY):
        return _judge(match, Strength.WEAK, in_query=True)
    return _judge(match, Strength.PASSWORD)


def _access_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if is_random(match[1], 24) else NOTHING


def _judge(
    match: "re.Match[str]", strength: Strength, *, in_query: bool = False, is_flag: bool = False
) -> Sequence[MatchSpan]:
    kind = match.lastgroup or "bare"
    start, end = match.span(kind)
    value = match[kind]
    if kind == "bare" and not match["open"].endswith("`"):
        value = trim_bare(value, in_query=in_query or strength is Strength.WEAK)
    if strength is Strength.WEAK:
        accepted = _is_weak_value(value, in_query=in_query)
    else:
        accepted = _is_accepted(value, match, is_flag=is_flag, digits=strength is Strength.PASSWORD)
    if not accepted:
        return NOTHING
    if start + len(value) < end or end - start < LONGEST_VALUE:
        return ((start, start + len(value)),)
    rest = REST[kind].match(match.string, end)
    tail = "" if rest is None else rest[0].rstrip(".:*_" if kind == "bare" else None)
    return ((start, end + len(tail)),)


def _is_accepted(value: str, match: "re.Match[str]", *, is_flag: bool, digits: bool) -> bool:
    below, prose, space, opened = match.group("below", "prose", "space", "open")
    if match["pair"] and digits:
        return is_plain_value(value)
    if below:
        return is_random(value, 10) and re.search("[:=]", value.rstrip("=")) is None
    if prose:
        return is_secret(value, digits=True) and (len(value) >= 8 or value.isdigit())
    if space is not None and not is_flag and not opened:
        unsayable = not is_words(value) or re.search(r"[!@#$%^&*]", value)
        return len(value) >= 8 and is_secret(value) and bool(unsayable)
    if value.startswith("sk-"):
        return not is_stand_in(value)
    return is_secret(value, digits=digits) or _is_wordy(value, match, digits=digits)


def _is_wordy(value: str, match: "re.Match[str]", *, digits: bool) -> bool:
    if digits:
        return is_gibberish(value) or _is_word_chain(value, 4)
    return _signs(match) and _is_word_chain(value, 3)


def _signs(match: "re.Match[str]") -> bool:
    """Return whether a setting is named that signs or encrypts: any text serves there, words too."""
    start = match.start()
    head = match.string[start - LONGEST_NAME if start > LONGEST_NAME else 0 : start]
    name = head[len(head.rstrip(_NAME_CHARS)) :] + match["name"]
    written_so = name.isupper() or not _QUOTES.isdisjoint(match["open"])
    return written_so and name.lower().replace("_", "").endswith(_SIGNING_NAMES)


def _is_word_chain(value: str, fewest: int) -> bool:
    """Take `correct-horse-battery-staple`, which has no digit, and no name such as `my-db-password-file`."""
    if not value.islower() or "_" in value or not is_passphrase(value, fewest):
        return False
    most = Strength.NONE if value.count("-") < 4 else Strength.WEAK
    return strength_of(value) <= most and not is_stand_in(value)


def _is_weak_value(value: str, *, in_query: bool) -> bool:
    """Ask more of the value of a mere `key`, because hashes and ids have that name too."""
    if in_query:
        return is_random(value, 16)
    return is_random(value, _SHORTEST_WEAK) and _DIGITS_AND_MORE.match(value) is not None


def trim_bare(value: str, *, in_query: bool) -> str:
    """Cut off what belongs to the sentence, the list or the URL around the value."""
    if value.isalnum():
        return value
    end = (_QUERY_END if in_query else _LIST_END).search(value)
    value = value if end is None else value[: end.start()]
    for opening, closing in ("()", "[]", "{}"):
        if closing in value and opening not in value:
            value = value.split(closing, 1)[0]
    return value.rstrip("*_.:") if value.endswith(("*", "__", ".", ":")) else value


def _salt(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a long value in quotes that no name, path or sentence could be."""
    value = match["value"]
    has_sign_inside = re.search(r"[^A-Za-z0-9 _./-]", value) is not None
    is_sure = has_sign_inside or (len(value) >= _LONGEST_HASH_OF_KEY and has_all_kinds(value))
    is_sure = is_sure and is_random(value.replace(" ", ""), 26)
    return (match.span("value"),) if is_sure else NOTHING


RULES = (
    RedactionRule(
        "labelled_secret",
        ("_key'", '_key"', "_salt'", '_salt"'),
        r"(?i)_(?:key|salt)[\"'][ \t]{0,2}[,:=][ \t=>]{0,16}(?P<quote>[\"'])(?P<value>(?:(?!(?P=quote))[ -~]){28,160}+)(?P=quote)",
        _salt,
        bounded=False,
    ),
    RedactionRule(
        "labelled_secret",
        ENGLISH_NAMES,
        _english_pair("[A-Za-z0-9_.$-]{2,48}+"),
        _english,
        bounded=False,
        swallows=False,
        names=True,
        wraps=True,
    ),
    RedactionRule(
        "labelled_secret_zh",
        tuple(map(str.lower, CHINESE_NAMES)),
        _chinese_pair(
            f"(?:{'|'.join(CHINESE_NAMES)})(?:[ \\t]?(?:key|secret|token|KEY|Key|Token|Secret))?"
        ),
        _chinese,
        bounded=False,
        swallows=False,
        names=True,
        wraps=True,
    ),
    RedactionRule(
        "access_key_pair",
        ("ak:", "ak=", "ak：", "sk:", "sk=", "sk："),
        r"[asAS][kK][:=：][ \t]?[\"']?([A-Za-z0-9+/]{24,64}+={0,2})",
        _access_key,
    ),
)


_USER_NAME = (
    r"(?:user(?:[ _-]?name|[ _-]?id)?|login|account|e-?mail|benutzer(?:name)?|konto|identifiants?|utilisateur|compte|usuario|cuenta|correo|utente"
    r"|usuário|conta|gebruiker(?:snaam)?|użytkownik|логин|юзер|id)"
)
_EASTERN_USER_NAME = (
    "(?:用户名?|用戶名?|[账帐帳賬][号號户戶]|登录名|ユーザー名?|アカウント|아이디|계정|id)"
)
_USER_AND = re.compile(
    rf"(?:{_USER_NAME}[ ]?(?:/|&|\+|、|,|，|·|[ ](?:and|und|et|y|e|en|i|и)[ ])|{_EASTERN_USER_NAME}[ ]?(?:/|&|\+|、|，|或|与|與|和|及|と|및|와|과)?)"
    r"[ ]?(?:the |la |le |das |el |o )?\Z",
    re.IGNORECASE,
)
_VALUE_SIGN = "[!-.0-~\u00c0-\u024f\u0400-\u04ff]"
_USER_AND_PASSWORD = re.compile(
    r"[\"'“`(]?[\w.@+-]{1,64}[\"'”`]?(?:[ ]{0,2}(?:[/,;|:·，、；→+]|->|—|–)[ ]{0,2}|[ ]{1,8}|\t)[\"'“`]?"
    rf"(?P<value>{_VALUE_SIGN}{{3,64}}?)(?=[\"'”`)）.,;]{{0,3}}(?:\s|\Z|[，。；]))"
)


def password_of_pair(head: str, text: str, place: int) -> MatchSpan | None:
    """Return where the password of a pair is, if `head` ends in the name of a user and values are at `place`.

    It may be redacted already.
    """
    if _USER_AND.search(head) is None:
        return None
    pair = _USER_AND_PASSWORD.match(text, place)
    if pair is None or is_blank(pair["value"]):
        return None
    value = pair["value"]
    is_taken = (
        not is_latin(value) or value == PLACEHOLDER or is_plain_value(unaccented(value), code=False)
    )
    return pair.span("value") if is_taken else None


_ACCOUNT_NAMES = (
    "账号 ", "帐号 ", "账户 ", "用户 ", "管理员 ", "賬號 ", "帳號 ", "user ", "account ", "login ", "konto ", "benutzer ", "compte ", "utilisateur ", "usuario ", "cuenta ", "utente ",
    "usuário ", "conta ", "gebruiker ", "логин ", "アカウント ", "ユーザー ", "계정 ", "아이디 ",
)  # fmt: skip


def _pair_of_account(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take X of `account dba:X`, if it cannot be a word."""
    value = trim_bare(match[1], in_query=False).rstrip("!?,;")
    is_odd = oddity(value) >= Oddity.ODD or (has_digit_and_letter(value) and has_sign(value))
    is_taken = is_odd and is_plain_value(value)
    return ((match.start(1), match.start(1) + len(value)),) if is_taken else NOTHING


PAIR_RULES = (
    RedactionRule(
        "credential_pair",
        _ACCOUNT_NAMES,
        r"(?iu:[^\s:]{2,12}) [\w.-]{2,32}(?:[:：]|[ ]?[/／][ ]?)(?=[^\s]{5})([!-.0-~]{5,64}+)",
        _pair_of_account,
        bounded=False,
    ),
)


LONGEST_IDENTIFIER = 64
LONGEST_FIELD_VALUE = 160

_LATIN = "A-Za-z0-9\u00c0-\u024f"
_FIELD_NAMES = (
    "serial", "license", "licence", "activation", "registration", "product", "pass", "pw", "pwd", "pswd", "mima", "wifikey", "wlankey", "wifi_key", "wlan_key", "networkkey", "network_key", "wpakey", "wpa_key", "secret", "token", "apikey", "api key", "api-key", "api_key", "psk", *FOREIGN_NAMES,
    *(name for name in CHINESE_NAMES if name != "钥匙"), *HAN_LABELS,
)  # fmt: skip
_OTHER_SCRIPTS = tuple(name.lower() for name in _FIELD_NAMES if not is_latin(name))
_NAMES_OF_CODES = ("serial", "license", "licence", "activation", "registration", "product")
"""Names behind which a code in groups, as machines write them, is a secret."""
_IDENTIFIER = f"[{_LATIN}\u0400-\u04ff_.$-]"
_IDENTIFIER_BEFORE = re.compile(rf"{_IDENTIFIER}{{1,{LONGEST_IDENTIFIER}}}\Z")
_FIELD_CLOSE = r"(?:&quot;)?[\"'`*_)\]}”」』】»›>\\]{0,8}"
_FIELD_ASIDE = r"(?:[ ]?(?:\([^()\n]{1,40}\)|（[^（）\n]{1,40}）|\[[^\[\]\n]{1,40}\])){0,2}"
_LEADERS = r"[ \t]{0,4}(?:(?:[.…·・_~][ ]?){3,60}|…|(?:-[ ]?){4,60})[ ]?[:：]?"
_FIELD_JOINT = (
    rf"(?:(?P<leaders>{_LEADERS})|(?P<macro>(?:\}}[ ]?)?\{{)|(?P<form>\"\r?\n(?:[A-Za-z-]{{3,24}}:[^\n]{{0,80}}\r?\n)?\r?\n)"
    r"|(?P<assign>\.?[ \t\u3000]{0,24}(?:={1,3}>?|:=?(?![/:])|[：＝→⇒⟶➜➔»›~·•]|[-=]>|👉|➡\ufe0f?|[–—](?=[ ])))"
    r"|(?P<argument>(?<=[\"'])[ ]?,))"
    r"[ \t\u3000]{0,24}(?:\(\s{0,16}|!{1,2}[a-z][\w-]{1,24}[ ])?"
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
_ESCAPED_SIGN = re.compile(r"\\([^\w\s\\])")
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
    strength = _strength_of_field(match)
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
        plain = unaccented(_ESCAPED_SIGN.sub(r"\1", value) if quoted else value)
        is_taken = _is_password(plain, quoted=quoted) and (
            strength is not Strength.SECRET or _is_key(plain)
        )
    return ((first, last),) if is_taken else NOTHING


def _strength_of_field(match: "re.Match[str]") -> Strength:
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


def _field_rule(names: Sequence[str], name: str) -> RedactionRule:
    return RedactionRule(
        "labelled_password",
        tuple(dict.fromkeys(map(str.lower, names))),
        rf"{name}{_FIELD_CLOSE}{_FIELD_ASIDE}{_FIELD_CLOSE}{_FIELD_JOINT}",
        _field,
        bounded=False,
        swallows=False,
        names=True,
    )


def _any_of(names: Sequence[str]) -> str:
    return "|".join(sorted(map(re.escape, names), key=len, reverse=True))


_LINES_AROUND = 200
_SERVICE_SETTING = re.compile(
    r"(?:\A|\n)[ \t-]{0,16}[\"']?(?:[\w.-]{0,24}[_.-])?(?:host(?:name)?|port|ur[il]|addr(?:ess)?|server|broker|endpoint|user(?:name)?|db|database)[\"']?[ \t]{0,8}[:=]",
    re.IGNORECASE,
)
_METHOD = re.compile(
    r"sha-?[0-9]|scram|md5|oauth|oidc|saml|ntlm|kerberos|krb5|gssapi|basic|digest|bearer|cert|ldap|[0-9]{5}|client|service|account",
    re.IGNORECASE,
)
_NUMBERED_WORDS = re.compile(r"[a-z]{2,}(?:[_.-][a-z]{1,}){1,4}[_.-][0-9]{2,6}\Z")


def _auth_of_service(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of `auth:` among the settings of a service, if it is the name of no method."""
    text, start, end = match.string, match.start(), match.end()
    value = match["value"]
    is_odd = oddity(value) >= Oddity.ODD or _NUMBERED_WORDS.match(value) is not None
    if not is_odd or not is_plain_value(value) or names_a_secret(value) or _METHOD.search(value):
        return NOTHING
    first = max(0, start - _LINES_AROUND)
    is_among = _SERVICE_SETTING.search(text, first, start) or _SERVICE_SETTING.search(
        text, end, end + _LINES_AROUND
    )
    return (match.span("value"),) if is_among else NOTHING


_WORD_NAMES = tuple(name for name in _FIELD_NAMES if re.fullmatch(f"{_IDENTIFIER}+", name))
_PHRASE_NAMES = tuple(name for name in _FIELD_NAMES if name not in _WORD_NAMES)

FIELD_RULES = (
    _field_rule(_WORD_NAMES, rf"(?P<name>(?>{_IDENTIFIER}{{2,{LONGEST_IDENTIFIER}}}(?<![.-])))"),
    _field_rule(
        _PHRASE_NAMES, rf"(?P<name>(?iu:{_any_of(_PHRASE_NAMES)})(?:_(?u:\w){{1,24}}|s\b)?)"
    ),
    RedactionRule(
        "labelled_password",
        ("auth:", "auth =", "auth=", 'auth"'),
        r"(?i:auth)[\"']?[ \t]{0,4}[:=][ \t]{0,4}[\"']?(?P<value>[!#-&(-+\--~]{6,64}?)[\"']?,?[ \t]*(?=[\r\n#]|\Z)",
        _auth_of_service,
        bounded=False,
    ),
)


LONGEST_HEAD_OF_LABEL = 80
BEYOND = 240
"""How far behind the passage the rules may look."""

_SYLLABLES = (
    "pass|word", "pass|wort", "pass|phrase", "pass|code", "passe|wort", "kenn|wort", "contra|seña", "contra|sena", "wacht|woord", "lösen|ord",
)  # fmt: skip
_SPACED_WORDS = (
    "motdepasse",
    "palavrapasse",
    "senha",
    "hasło",
    "пароль",
    "secret",
    "token",
    "apikey",
    "login",
)
_EASTERN_WORDS = (
    "密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "令牌", "私钥", "私鑰", "提取码", "验证码", "驗證碼", "授权码", "パスワード", "暗証番号", "合言葉", "비밀번호", "비번", "암호",
)  # fmt: skip
_WORDS = (*(word.replace("|", "") for word in _SYLLABLES), *_SPACED_WORDS)
_GAPS_IN_LABEL = (" ", "  ", ".", ". ", "-", " - ", "_", "*", "·", " · ", "•", "\u3000")
_BREAKS_OF_LABEL = ("-\n", "-\r", " ", "-", "</", "<", "**", "*", "__", "_", ".", "·")
_GAP_IN_LABEL = r"(?:[ \u3000]{1,6}|[ ]?[.·_•*-][ ]?|\*\*|__|</?[a-z]{1,6}>|-\r?\n[ \t>]{0,8}|)"
_LABEL = re.compile(
    "|".join(
        rf"{'(?<![a-z])' if word.isascii() else ''}{_GAP_IN_LABEL.join(map(re.escape, word))}"
        for word in (*_WORDS, *_EASTERN_WORDS)
    ),
    re.IGNORECASE,
)
_REST_OF_WORD = re.compile(r"\S{0,160}")
_NO_LETTER = re.compile(r"</?[a-z]{1,6}>|[^\w]|_", re.IGNORECASE)


def _anchors() -> Iterator[str]:
    for word in _WORDS:
        yield from (gap.join(word[:4]) for gap in _GAPS_IN_LABEL)
        yield from (f"{word[0]}{mark}{word[1:4]}" for mark in ("**", "*", "</", "__"))
    for word in _SYLLABLES:
        first, second = word.split("|")[:2]
        yield from (
            first + sign + (second[:2] if sign.isprintable() and sign[0] != "<" else "")
            for sign in _BREAKS_OF_LABEL
        )
    for sign in _EASTERN_WORDS:
        yield from (sign[:2] + gap + sign[2] for gap in _GAPS_IN_LABEL if len(sign) > 2)
        yield from (
            sign[0] + gap + sign[1]
            for gap in (
                *_GAPS_IN_LABEL,
                *(" " * width for width in range(3, 7)),
                *("\u3000" * width for width in (2, 3, 4)),
            )
        )


class _LabelRepairer:
    """Finds the secrets behind broken labels with the rules for whole ones."""

    def __init__(self, rules: Sequence[RedactionRule]) -> None:
        self._rules = rules

    @cached_property
    def _scanner(self) -> Scanner:
        return make_scanner(self._rules)

    def __call__(self, match: "re.Match[str]") -> Sequence[MatchSpan]:
        text, begin = match.string, match.start()
        label = _LABEL.match(text, begin)
        if label is None or label[0].isalpha():
            return NOTHING
        first = text.rfind("\n", max(0, begin - LONGEST_HEAD_OF_LABEL), begin) + 1
        first = max(first, begin - LONGEST_HEAD_OF_LABEL)
        last = _REST_OF_WORD.match(text, min(len(text), match.end() + BEYOND))
        passage = text[first : last.end() if last else len(text)]
        pieces: list[str] = []
        moves: list[tuple[int, int]] = []
        done = length = 0
        for broken in _LABEL.finditer(passage):
            word = _NO_LETTER.sub("", broken[0])
            pieces += (passage[done : broken.start()], word)
            length += broken.start() - done + len(word)
            done = broken.end()
            moves.append((length, first + done - length))
        repaired = "".join(pieces) + passage[done:]
        return tuple(_moved(moves, scan(self._scanner, repaired), label.end()))


def _moved(
    moves: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int, int]], label_end: int
) -> Iterator[MatchSpan]:
    """Yield where the spans of the repaired passage lie in the text, behind the first label."""
    for start, end, _ in spans:
        shift = next((move for at, move in reversed(moves) if at <= start), None)
        if shift is not None and start + shift >= label_end:
            yield start + shift, end + shift


def broken_label_rule(rules: Sequence[RedactionRule]) -> RedactionRule:
    """Write the rule that reads broken labels as the given rules read whole ones."""
    words = "|".join(
        _GAP_IN_LABEL.join(map(re.escape, word)) for word in (*_WORDS, *_EASTERN_WORDS)
    )
    return RedactionRule(
        "labelled_password",
        tuple(dict.fromkeys(map(str.lower, _anchors()))),
        rf"(?i:{words})[^\n]{{0,240}}(?:\r?\n[^\n]{{0,120}}){{0,3}}",
        _LabelRepairer(rules),
        bounded=False,
    )
