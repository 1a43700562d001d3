"""Secrets that no label names but their place: an argument of a command or a call, a column of INSERT, an answer.

The passwords that a program reads from its command line, and those in statements of code: in a query,
a call or the answer to a prompt. `labels` finds the values of flags that name a password themselves.
"""

import re
from collections.abc import Iterator, Sequence

from creonowd.redaction.rules import (
    NOTHING,
    UUID,
    MatchSpan,
    RedactionRule,
    first_group,
    unless_stand_in,
)
from creonowd.redaction.secret_names import Strength, strength_of
from creonowd.redaction.shape import (
    Oddity,
    has_digit_and_letter,
    has_sign,
    is_hash,
    is_latin,
    is_plain_value,
    is_random,
    is_secret,
    is_stand_in,
    names_a_secret,
    oddity,
    unaccented,
)

LONGEST_COMMAND = 120

_PROGRAM = re.compile(
    r"(?:sshpass|mysql\w{0,8}|mariadb\w{0,8}|mongo\w{0,8}|redis-cli|sqlcmd|7za?|zip|unzip|ldapsearch"
    r"|(?:docker|podman|helm registry|az|heroku) login)(?![\w-])"
)
_PAIR = re.compile(r"[\"' ][\w.-]{1,64}:([^\s\"'|]{3,64})[\"']?[ ]{0,4}\|[ ]{0,4}(?:sudo )?\Z")
_ECHO = re.compile(r"echo[ ]{1,4}[\"']?([^\s\"'|]{4,64})[\"']?[ ]{0,4}\|[ ]{0,4}\Z")

_ARGUMENT = r"[\"']?([^\s\"'`，。；$<-][^\s\"'`，。；]{2,128}+)"


def _pair(match: "re.Match[str]") -> Sequence[MatchSpan]:
    value = match[1]
    is_sure = is_secret(value) or (len(value) >= 5 and is_plain_value(value))
    return (match.span(1),) if is_sure else NOTHING


def _call_argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the password that a program hands to a call, if it is no word or stands behind a user."""
    value = match[match.lastindex or 1]
    is_sure = match[3] is not None or has_digit_and_letter(value) or has_sign(value)
    return (match.span(match.lastindex or 1),) if is_sure and is_plain_value(value) else NOTHING


def _argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of a one-letter flag if a program that reads passwords stands before it."""
    if not is_secret(match[1], digits=True):
        return NOTHING
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    command = re.split(r"[\n;|&]", head)[-1]
    return (match.span(1),) if _PROGRAM.search(command) else NOTHING


def _encryption_argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the key of `openssl enc -k …` and the password of `smbclient -U user%…`."""
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    command = re.split(r"[\n;|&]", head)[-1]
    is_known = match[0].startswith(" -U") or re.search(r"openssl (?:enc|aes)", command)
    return _plain_argument(match) if is_known else NOTHING


def _piped_pair(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `| chpasswd` for the `user:password` that is piped into it."""
    first = max(0, match.start() - LONGEST_COMMAND)
    pair = _PAIR.search(match.string, first, match.start())
    return NOTHING if pair is None or is_stand_in(pair[1]) else (pair.span(1),)


def _here_string(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what is handed to a program that asks for a password: `ssh-add <<< '…'`."""
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    asks = _ASKING_PROGRAM.search(re.split(r"[\n;|&]", head)[-1]) is not None
    return _plain_argument(match) if asks else NOTHING


def _plain_argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take any value where a program reads nothing but a password, in quotes with its spaces."""
    start, quote = match.start(1), match.string[match.start(1) - 1]
    last = match.string.find(quote, match.end(1), match.end(1) + 64) if quote in "\"'" else -1
    if last > match.end(1) and "\n" not in match.string[start:last]:
        return ((start, last),)
    if _names_password(match[1]):
        return NOTHING
    value = (
        match[1].partition("@")[0]
        if match[0].lower().startswith(("sqlplus", "jdbc:"))
        else match[1]
    )
    if not is_latin(value) or not is_plain_value(unaccented(value), code=False):
        return NOTHING
    return ((match.start(1), match.start(1) + len(value)),)


def _piped_password(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `| sudo -S` for the password that is piped into it."""
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    echo = _ECHO.search(head)
    if echo is None or is_stand_in(echo[1]):
        return NOTHING
    return ((match.start() - len(head) + echo.start(1), match.start() - len(head) + echo.end(1)),)


_ASKING_PROGRAM = re.compile(
    r"(?:passwd|ssh-add|cryptsetup|kinit|gpg2?|openssl|sudo|\bsu|veracrypt|age|docker login|vault login|ecryptfs\S*|keepassxc-cli|\bpass insert)\b"
)
_MORE = r"(?:[^\n;|&]{0,80}?[ ])??"
_LEADS = (
    ("sshpass ", r"sshpass[ ]{1,4}-p[ ]?"),
    ("redis-cli ", rf"redis-cli {_MORE}(?:-a|--pass)[ ]"),
    ("zip ", rf"(?:un)?zip {_MORE}-P[ ]?"),
    ("7z", rf"7z[ar]? {_MORE}-p"),
    ("rar ", rf"(?:un)?rar {_MORE}-h?p"),
    ("unzip ", rf"unzip {_MORE}-P[ ]?"),
    ("unrar ", rf"unrar {_MORE}-h?p"),
    ("isakmp key ", r"isakmp key (?:[06] )?"),
    ("key-string ", r"key-string (?:[067] )?"),
    ("enable secret ", r"enable secret (?:[059] )?"),
    ("auth plain ", r"(?i:auth plain )"),
    ("auth login ", r"(?i:auth login )"),
    ("mysql", rf"mysql\w{{0,8}} {_MORE}-p"),
    ("mariadb", rf"mariadb\w{{0,8}} {_MORE}-p"),
    ("mongo", rf"mongo\w{{0,8}} {_MORE}-p[ ]"),
    ("docker login", rf"docker login {_MORE}-p[ ]"),
    ("podman login", rf"podman login {_MORE}-p[ ]"),
    ("registry login", rf"registry login {_MORE}-p[ ]"),
    ("az login", rf"az login {_MORE}-p[ ]"),
    ("oc login", rf"oc login {_MORE}-p[ ]"),
    ("ssh-keygen ", rf"ssh-keygen {_MORE}-[NP][ ]"),
    ("mosquitto_", rf"mosquitto_\w{{2,6}} {_MORE}-P[ ]"),
    ("ipmitool ", rf"ipmitool {_MORE}-P[ ]"),
    ("sqlcmd ", rf"sqlcmd {_MORE}-P[ ]?"),
    ("bcp ", rf"bcp {_MORE}-P[ ]?"),
    ("isql ", rf"isql {_MORE}-P[ ]?"),
    ("plink ", rf"plink {_MORE}-pw[ ]"),
    ("pscp ", rf"pscp {_MORE}-pw[ ]"),
    ("psftp ", rf"psftp {_MORE}-pw[ ]"),
    ("ncftp", rf"ncftp\w{{0,4}} {_MORE}-p[ ]"),
    ("mstsc ", rf"mstsc {_MORE}/p:"),
    ("rdesktop ", rf"rdesktop {_MORE}-p[ ]"),
    ("snmpwalk ", rf"snmpwalk {_MORE}-[cAX][ ]"),
    ("snmpget ", rf"snmpget {_MORE}-[cAX][ ]"),
    ("ldapsearch ", rf"ldap\w{{3,8}} {_MORE}-w[ ]"),
    ("ldapmodify ", rf"ldap\w{{3,8}} {_MORE}-w[ ]"),
    ("http -a ", r"http -a [\w.@-]{1,64}:"),
    ("secret 0 ", "secret 0 "),
    ("pihole ", r"pihole -a -p[ ]"),
    ("ftp> user ", r"ftp> user \S{1,64} "),
    ("rclone obscure ", "rclone obscure "),
    ("snmp-server community ", "snmp-server community (?:[07] )?"),
    ("snmp community ", "(?:set )?snmp community "),
    ("ascii-text ", r"(?:key|secret|psk|password) ascii-text "),
    ("radtest ", r"radtest \S{1,64} "),
    ("wpa_passphrase ", r"wpa_passphrase (?:\"[^\"\n]{1,32}\"|'[^'\n]{1,32}'|\S{1,32}) "),
    ("encrypt_string ", r"encrypt_string (?:--vault-id \S{1,64} )?(?!-)"),
    ("jdbc:oracle:", r"jdbc:oracle:\w{1,8}:[\w.-]{1,64}/(?=[^\s@]{3,64}@)"),
    ("sqlplus ", r"(?i:sqlplus) (?:-\w+ )?[\"']?\w{1,32}/(?=[^\s@]{3,64}(?:@|\s|\Z))"),
    ("lftp ", r"lftp (?:[^\n;|&]{0,40}? )?-u [\"']?[\w.@-]{1,64},"),
    ("-storepass ", "-storepass[ ]"),
    ("-keypass ", "-keypass[ ]"),
    ("-passin pass:", "-passin pass:"),
    ("-passout pass:", "-passout pass:"),
    ("-pass pass:", "-pass pass:"),
    ("htpasswd -", r"htpasswd -\w{0,3}b\w{0,3} (?:-\w )?\S{1,128} \S{1,64} "),
    ("htpasswd -n", r"htpasswd -nb\w{0,3} (?:-\w )?\S{1,64} "),
    ("net user ", r"(?i:net user) \S{1,64} (?!/)"),
    ("net use ", r"(?i:net use) \S{1,4} \S{1,128} (?=\S{3,64} /user:)"),
    ("/user:", r"(?<![/\w])/(?i:user):\S{1,64} (?!/)"),
    ("password-command ", r"password-command [\"']?echo [\"']?"),
    ("passcmd ", r"(?i:passcmd) [\"']{0,2}echo "),
    (
        "nickserv ",
        r"(?i:nickserv) (?i:identify|id|login)[ ](?:[\w|`\[\]{}^-]{1,32} (?=\S{3,64}[ ]*(?:[\r\n]|\Z)))?",
    ),
    ("nickserv register ", "(?i:nickserv register) "),
    ("nickserv set password ", "(?i:nickserv set password) "),
    ("/ns ", r"/(?i:ns) (?i:identify|id|register)[ ]"),
    ("/oper ", r"/oper \S{1,32} "),
    ("/quote pass ", "/(?i:quote pass) "),
    ("_auth=", r"(?<=[A-Za-z])_(?i:auth)=(?![^\s:]{0,64}:)"),
)
"""What stands right before a password: of each program, its name and what it reads it by."""
_TWO_LEADS = (
    ("qpdf ", r"qpdf [^\n;|&]{0,80}?--encrypt[ ]"),
    ("register ", r"(?:(?<=\n)|(?<![\s\S]))/register[ ]"),
)
_LEADS_INSIDE_WORDS = (
    ("_pw ", "(?<=user|nput|wner)_pw[ ]"),
    ("freerdp ", rf"freerdp {_MORE}/p:"),
)
_LINE_OF_PROTOCOL = re.compile(r"(?:\A|[\r\n]|[>$C:][ ])[ \t]{0,4}\Z")


def _two_arguments(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take two passwords in a row, such as those of a reader and of an owner."""
    values = [match[1], match[2]]
    return [
        match.span(at)
        for at, value in enumerate(values, 1)
        if len(value) >= 3 and is_plain_value(value) and not _names_password(value)
    ]


def _line_of_protocol(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what follows `PASS` or `AUTH` on a line of FTP, IRC, POP or Redis."""
    text, start = match.string, match.start()
    if not _LINE_OF_PROTOCOL.search(text, max(0, start - 12), start):
        return NOTHING
    value = match[1]
    is_odd = has_digit_and_letter(value) or has_sign(value) or "_" in value
    is_asked = _PROTOCOL.search(text, max(0, start - 120), start) is not None
    return (match.span(1),) if (is_odd or is_asked) and is_plain_value(value) else NOTHING


_PROTOCOL = re.compile(
    r"(?:\A|\n|[>C:][ ])[ ]{0,4}(?:USER [\w.@-]{1,64}|331 |220 |\+OK)[^\n]{0,80}\r?\n"
)


def _names_password(value: str) -> bool:
    return names_a_secret(value) and not has_digit_and_letter(value)


def _leading(leads: Sequence[tuple[str, str]]) -> tuple[tuple[str, ...], str]:
    """Return the anchors and the pattern of what stands before a password."""
    return tuple(anchor for anchor, _ in leads), "|".join(lead for _, lead in leads)


_FIRST_ANCHORS, _FIRST = _leading(tuple(lead for lead in _LEADS if lead[0][0].isalnum()))
_OTHER_ANCHORS, _OTHERS = _leading(
    (*(lead for lead in _LEADS if not lead[0][0].isalnum()), *_LEADS_INSIDE_WORDS)
)
_TWO_ANCHORS, _TWO = _leading(_TWO_LEADS)

_COMMAND_RULES = (
    RedactionRule(
        "command_line_password",
        _FIRST_ANCHORS,
        rf"(?:{_FIRST}){_ARGUMENT}",
        _plain_argument,
    ),
    RedactionRule(
        "command_line_password",
        _OTHER_ANCHORS,
        rf"(?:{_OTHERS}){_ARGUMENT}",
        _plain_argument,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        _TWO_ANCHORS,
        rf"(?:{_TWO})[\"']?([^\s\"'-][^\s\"']{{2,64}})[\"']?[ ][\"']?([^\s\"'-][^\s\"']{{2,64}})",
        _two_arguments,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        ("pass ", "auth "),
        r"(?:PASS|AUTH)[ ]([^\s:$<{(]\S{3,64})[ \t]*(?=[\r\n]|\Z)",
        _line_of_protocol,
    ),
    RedactionRule(
        "command_line_password",
        (" -k ", " -u "),
        rf"(?: -k | -U [\"']?[\w.\\-]{{1,64}}%){_ARGUMENT}",
        _encryption_argument,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        ("chpasswd",),
        "chpasswd",
        _piped_pair,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (" -u", "--user ", "--user=", "--proxy-user "),
        r"(?: -u|--(?:proxy-)?user)[ =]?[\"']?[^\s:\"']{1,64}:([^\s\"'`，。；]{4,128}+)",
        _pair,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (" -p", " -a ", " -w "),
        r" -[pPaw][ =]?[\"']?([^\s\"'`，。；-][^\s\"'`，。；]{3,128}+)",
        _argument,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        ("<<<",),
        rf"<<<[ ]?{_ARGUMENT}",
        _here_string,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (
            "sudo -s",
            "cryptsetup ",
            "smbpasswd ",
            "passwd --stdin",
            "openconnect ",
            "gpg --passphrase-fd",
            "docker login",
            "su -c",
        ),
        r"sudo -S|cryptsetup |smbpasswd |passwd --stdin|openconnect |gpg --passphrase-fd|docker login|su -c",
        _piped_password,
    ),
    RedactionRule(
        "command_line_password",
        ("auth=(", "auth = (", "basicauth(", "digestauth("),
        r"(?i)(?:auth[ ]?=[ ]?|basicauth|digestauth)\([\"'][^\"'\n]{1,64}[\"'],[ ]?[\"']([^\s\"']{4,128})[\"']",
        _pair,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (
            "password(",
            "passwd(",
            "auth(",
            "login(",
            "connect(",
            "credential(",
            "credentials(",
            "authenticate(",
            "signin(",
            "sign_in(",
        ),
        r"(?i)(?:login|auth|credentials?|authenticate|sign_?in)\([ ]?[\"'][^\"'\n]{1,64}[\"'],[ ]?[\"'](?P<second>[^\s\"']{4,128})[\"']|(?:(?:set_?)?pass(?:word|wd)|auth|login)\([\"']([^\s\"']{6,128})[\"']\)"
        r"|connect\([ ]?[\"'][^\"'\n]{1,160}[\"'],[ ]?[\"'][^\"'\n]{1,64}[\"'],[ ]?[\"']([^\s\"']{4,128})[\"']",
        _call_argument,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        ("identified by ", "identified with "),
        r"(?i)identified (?:with \S{1,40} )?by (?:password )?[\"']([^\s\"']{4,128})[\"']",
        _pair,
    ),
    RedactionRule(
        "command_line_password",
        ("set password for ", "set password ="),
        r"(?i)set password (?:for [^\s=]{1,80} )?= ?(?:password\()?[\"']([^\"'\n]{4,128})[\"']",
        _pair,
    ),
    RedactionRule(
        "command_line_password",
        ("convertto-securestring ",),
        r"(?i)convertto-securestring (?:-string )?[\"']([^\"'\n]{4,128})[\"']",
        first_group,
    ),
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
_ITEM_OF_ARRAY = re.compile(r"[\s,]{0,24}(?P<quote>[\"'`])(?P<value>[^\s\"'`]{4,128})(?P=quote)")
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


def _listed(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the strings of `tokens = ["…", "…"]` that no words are."""
    spans: list[MatchSpan] = []
    place = match.end()
    of_passwords = match["passwords"] is not None
    while len(spans) < MOST_USERS and (item := _ITEM_OF_ARRAY.match(match.string, place)):
        value = item["value"]
        is_odd = oddity(value) >= Oddity.ODD or has_digit_and_letter(value)
        if not is_plain_value(value) or not (is_odd if of_passwords else is_random(value, 12)):
            break
        spans.append(item.span("value"))
        place = item.end()
    return spans


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
_STATEMENT_RULES = (
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
                "secrets",
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
        tuple(
            name + joint
            for name in ("passwords", "passwds", "secrets", "tokens", "keys")
            for quote in ("", '"', "'")
            for joint in (
                f"{quote}: [",
                f"{quote}:[",
                f"{quote} = [",
                f"{quote}=[",
                f"{quote} => [",
            )
        ),
        r"(?i)(?:(?P<passwords>passw(?:or)?ds)|secrets|tokens|keys)[\"']?[ ]?(?:[:=]|=>)[ ]?\[",
        _listed,
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

RULES = (*_COMMAND_RULES, *_STATEMENT_RULES)
