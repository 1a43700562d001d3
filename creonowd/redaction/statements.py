"""Secrets named by their place in a statement: a column of INSERT, an argument of a call, the answer to a prompt.

`commands` has the arguments of command lines, `fields` what a name and a sign of equality give away.
"""

import re
from collections.abc import Iterator, Sequence

from creonowd.redaction.rules import NOTHING, UUID, MatchSpan, RedactionRule, unless_stand_in
from creonowd.redaction.secret_names import Strength, strength_of
from creonowd.redaction.shape import (
    Oddity,
    has_sign,
    is_hash,
    is_plain_value,
    is_random,
    is_stand_in,
    oddity,
)

MOST_TUPLES = 64
LONGEST_TUPLE = 1024
LONGEST_PROMPT = 160
MOST_USERS = 24

_LITERAL = r"[Nn]?'(?:[^'\\\n]|''|\\.){0,256}'|[Nn]?\"(?:[^\"\\\n]|\\.){0,256}\""
_CELL = re.compile(
    rf"\s{{0,8}}(?:[\w.]{{1,32}}\((?P<inner>{_LITERAL})[^()\n]{{0,64}}\)|(?P<literal>{_LITERAL})|[^,()'\"\n]{{0,64}}(?:\([^()\n]{{0,64}}\))?)\s{{0,8}}(?P<end>[,)])"
)
_TUPLE = re.compile(r"[\s,]{0,8}\(")
_NAMED_BEFORE = re.compile(
    r"(?:pass|pwd|secret)[\w\"`\] ]{0,24}(?:=|,)[^\n]{0,40}\Z", re.IGNORECASE
)
_PROMPT_BEFORE = re.compile(
    r"(?:assw|assphr|PIN|Kennw|密码|口令|secret)[^\n]{0,60}(?:\n[^\n]{0,60}){0,2}\Z"
)
_KEY_BEFORE = re.compile(
    r"wallet|private|privkey|signer|deployer|secret|mnemonic|account", re.IGNORECASE
)
_PROXY = re.compile(r"vmess|vless|trojan|v2ray|xray|tuic|alterId|xtls", re.IGNORECASE)
_USER = re.compile(
    r"[ \t]{1,12}(?:-[ ])?[\"']?[\w.@-]{2,40}[\"']?[ \t]?:[ \t]{1,4}(?P<quote>[\"']?)(?P<value>[^\s\"'#]{4,64})(?P=quote)[ \t]*(?:#[^\n]{0,80})?(?:\r?\n|\Z)"
)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,40}\Z")


def _inserted(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the values of the columns with a secret's name, tuple by tuple."""
    names = [name.strip(' \t\r\n`"[]') for name in match["columns"].split(",")]
    secret = {at for at, name in enumerate(names) if _names_secret(name)}
    return tuple(_cells(match.string, match.end(), secret)) if secret else NOTHING


def _names_secret(name: str) -> bool:
    return strength_of(name) >= Strength.SECRET or name.lower() in {"pass", "pw", "pwd", "pin"}


def _cells(text: str, place: int, columns: set[int]) -> Iterator[MatchSpan]:
    for _ in range(MOST_TUPLES):
        begin = _TUPLE.match(text, place)
        if begin is None:
            return
        place, column = begin.end(), 0
        while cell := _CELL.match(text, place, place + LONGEST_TUPLE):
            if column in columns and (span := _literal(cell)) is not None:
                yield span
            place, column = cell.end(), column + 1
            if cell["end"] == ")":
                break


def _literal(cell: "re.Match[str]") -> MatchSpan | None:
    kind = "inner" if cell["inner"] else "literal"
    if not cell[kind]:
        return None
    first, last = cell.span(kind)
    first += 2 if cell[kind][0] in "nN" else 1
    value = cell.string[first : last - 1]
    return None if not value or is_stand_in(value) else (first, last - 1)


def _hashed(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what is hashed into a column with a secret's name."""
    first = max(0, match.start() - 80)
    return (match.span(1),) if _NAMED_BEFORE.search(match.string, first, match.start()) else NOTHING


def _answered_prompt(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what a script sends where a program asks for a password."""
    first = max(0, match.start() - LONGEST_PROMPT)
    is_asked = _PROMPT_BEFORE.search(match.string, first, match.start()) is not None
    return (match.span(1),) if is_asked and not is_stand_in(match[1]) else NOTHING


def _call(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if is_plain_value(match[1], code=False) else NOTHING


def _client(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the second argument of a client that is made from an id and a secret."""
    value = match["secret"]
    is_key = is_random(value, 20) or (is_hash(value) and len(value) in {32, 40, 64})
    return (match.span("secret"),) if is_key else NOTHING


def _array(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the string of `char wifi_pass[] = "…"`."""
    name = _IDENTIFIER.search(match.string, max(0, match.start() - 41), match.start())
    is_named = name is not None and _names_secret(name[0])
    return (match.span(1),) if is_named and not is_stand_in(match[1]) else NOTHING


def _hexadecimal_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take 64 hexadecimal digits behind `0x` near the word for a wallet or a private key."""
    first = max(0, match.start() - 72)
    line = match.string[max(first, match.string.rfind("\n", first, match.start())) : match.start()]
    return (match.span(),) if _KEY_BEFORE.search(line) else NOTHING


def _proxy_user(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the id of a user of a proxy, which is all that a client needs to get in."""
    text, start = match.string, match.start()
    near = text[max(0, start - 240) : start] + text[match.end() : match.end() + 120]
    return (match.span(1),) if _PROXY.search(near) else NOTHING


def _users(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the passwords of a list of users, such as `basic_auth_users`."""
    spans: list[MatchSpan] = []
    place = match.end()
    while len(spans) < MOST_USERS and (user := _USER.match(match.string, place)):
        value = user["value"]
        if not is_plain_value(value) or oddity(value) < Oddity.ODD:
            break
        spans.append(user.span("value"))
        place = user.end()
    return spans


_ADDRESS_BEFORE = re.compile(r"[A-Za-z0-9][\w.+-]{0,63}\Z")


def _beside_address(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what stands behind an e-mail address and a sign, if it can only be a password."""
    if not _ADDRESS_BEFORE.search(match.string, max(0, match.start() - 64), match.start()):
        return NOTHING
    value = match["value"].rstrip(".,;:!?。，；)）\"'`”»")
    start = match.start("value")
    is_listed = match["sign"].strip() in {",", ";", "，", "、", ""} and not has_sign(value)
    is_sure = (
        not is_listed
        and oddity(value) >= Oddity.ODD
        and is_plain_value(value)
        and not is_hash(value)
    )
    return ((start, start + len(value)),) if is_sure and not _TELEPHONE.match(value) else NOTHING


def _beside_host(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what stands behind a user at a host, in brackets or behind a sign."""
    value = match["value"].rstrip(".,;:!?)）")
    start = match.start("value")
    is_sure = oddity(value) >= Oddity.ODD and is_plain_value(value) and not is_hash(value)
    return ((start, start + len(value)),) if is_sure else NOTHING


_TELEPHONE = re.compile(r"[+0-9()/ -]+\Z")
RULES = (
    RedactionRule(
        "credential_pair",
        ("@",),
        r"@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,63}){1,4}[\"'`>)）]?(?P<sign>[ ]?(?:/|\||→|->|=>|·|;|:|：|、|，|,)[ ]?|[ ]{2,8}|\t|[ ](?:and|und|et|y|e|i|и|with|mit|avec|con|com|和|と|&|\+)[ ])[\"'`“「]?(?!\w{1,10}[:：=])(?P<value>[!-~]{5,64})",
        _beside_address,
        bounded=False,
    ),
    RedactionRule(
        "labelled_secret",
        ("wif:", "wif=", "wif ", 'wif"', "privkey", "private key", "private_key", "wallet"),
        r"(?i:wif|privkey|private[ _]key|wallet)[^\n]{0,40}?(?<![A-Za-z0-9])([5KLc][1-9A-HJ-NP-Za-km-z]{50,51})(?![A-Za-z0-9])",
        unless_stand_in,
        bounded=False,
    ),
    RedactionRule(
        "secret_in_column",
        ("insert into ", "replace into ", "insert ignore into "),
        r"(?i)(?:insert|replace) (?:ignore )?into [\w.`\"\[\]]{1,80}\s{0,8}\((?P<columns>[^()\n]{1,400})\)\s{0,8}values",
        _inserted,
    ),
    RedactionRule(
        "secret_in_column",
        (
            "md5('",
            "sha1('",
            "sha2('",
            "sha256('",
            "password('",
            "crypt('",
            "encrypt('",
            "hashbytes('",
        ),
        r"(?i)[a-z0-9]{3,10}\((?:'sha[0-9_]{1,6}', ?)?'([^'\n]{3,64})'",
        _hashed,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (
            'send "',
            'send -- "',
            "send '",
            'sendline("',
            "sendline('",
            'send("',
            "sendkeys ",
            'send_keys("',
            "write(",
        ),
        r"(?i)(?:send(?:line|[ _]?keys)?|write)(?: -- |\(|[ ])b?[\"']([^\"'\n\\]{3,64})(?:\\[rn]|\{enter\}|~)?[\"']",
        _answered_prompt,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (
            "getconnection(",
            "new pdo(",
            "mysqli(",
            "createconnection(",
            "setcredentials(",
            "withbasicauth(",
            "basicauthentication(",
            "usernamepasswordcredentials(",
            "passwordauthentication(",
            "networkcredential(",
        ),
        r"(?i)[a-z ]{6,32}\(\s{0,8}(?:[^,()\n]{1,160},\s{0,8})?[\"'][^\"'\n]{1,64}[\"'],\s{0,8}[\"']([^\"'\n]{4,128})[\"']",
        _call,
        bounded=False,
    ),
    RedactionRule(
        "labelled_secret",
        (
            "client(",
            "')('",
            '")("',
            "twilio(",
            "credential(",
            "credentials(",
            "sdk(",
            "api(",
            "oauth(",
            "auth(",
            "handler(",
            "session(",
        ),
        r"(?i)(?:[a-z]{3,10}|['\"]\))\(\s{0,8}(?P<quote>[\"'`])[\w.:@/-]{4,80}(?P=quote),\s{0,8}(?P<other>[\"'`])(?P<secret>[A-Za-z0-9+/_=-]{20,128})(?P=other)",
        _client,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        ('[] = "', '[]="', '[] = {"'),
        r"\[\][ ]?=[ ]?\{?\"([^\"\n]{4,128})\"",
        _array,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        ("ssh ", "sftp ", "scp "),
        r"(?:ssh|sftp|scp) (?:-\w \S{1,32} )?[\w.-]{1,32}@[\w.-]{3,64}(?: -p \d{2,5})?[ ]{0,4}(?:[(（/,，#:→—–]|//|->|pw|pass|密码)[ :]{0,2}(?P<value>[!-~]{5,64})",
        _beside_host,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        ("<auth-user-pass>",),
        r"<auth-user-pass>\s{1,8}[^\s<>]{1,64}\s{1,8}([^\n<>]{3,64})\n",
        unless_stand_in,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        (': psk "', ': eap "', ': xauth "'),
        r": (?:PSK|EAP|XAUTH) \"([^\"\n]{3,128})\"",
        unless_stand_in,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        (' * "',),
        r" \* \"([^\"\n]{4,128})\" [*0-9]",
        unless_stand_in,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        tuple(
            f"{name}:{end}"
            for name in (
                "auth_users",
                "users",
                "auth",
                "logins",
                "credentials",
                "passwords",
                "accounts",
            )
            for end in ("\n", "\r")
        ),
        r"[a-z_]{4,12}:\r?\n",
        _users,
        bounded=False,
    ),
    RedactionRule(
        "labelled_secret",
        ("0x",),
        r"0x[0-9a-fA-F]{64}(?![0-9a-fA-F])",
        _hexadecimal_key,
        bounded=False,
    ),
    RedactionRule(
        "url_credentials",
        ("uuid: ", 'uuid": "', "uuid=", '"id": "', "id: ", "uuid:", '"uuid":"', '"id":"'),
        rf"(?:uu)?id\"?[:=] ?\"?({UUID})",
        _proxy_user,
        bounded=False,
    ),
    RedactionRule(
        "url_credentials",
        ("trojan://", "vless://", "hysteria2://", "hy2://", "anytls://", "tuic://"),
        r"[a-z0-9]{3,9}://([^\s@/]{4,128})@",
        unless_stand_in,
    ),
)
