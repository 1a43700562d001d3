"""Secrets known by their format: JSON web tokens, private keys, URLs, headers.

Private keys are found also without the lines around them that name one: parts of JSON web keys,
hexadecimal lines, bytes, tails. Headers such as `Authorization` are found as they are pasted into
notes, code and logs. `labels` finds named values, `vendor_keys` what a prefix gives away.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Sequence

from creonowd.redaction.rules import (
    NOTHING,
    WORD,
    MatchSpan,
    RedactionRule,
    first_group,
    unless_stand_in,
    whole,
)
from creonowd.redaction.shape import (
    has_digit_and_letter,
    has_mixture,
    has_sign,
    is_plain_value,
    is_random,
    is_secret,
    is_stand_in,
    is_words,
)
from creonowd.redaction.split_points import KEY_NAME

_NEXT_LINE = r"[ \t]{0,4}\\?\r?\n[> \t]{0,40}"
_DASHES = "(?:-{4,5}|[–—]{1,5})"
_KEY_LINES = r"(?:\s|\\+[nrt]|[\"'+,>|*]|[A-Za-z-]{3,20}: [^\n\\]{0,120})*+"
_KEY_BODY = re.compile(
    rf"(?:{_KEY_LINES}[A-Za-z0-9+/=]{{16,}}+)+{_KEY_LINES}(?:[A-Za-z0-9+/]{{1,15}}+=*+(?=\s*\Z|[ \t]*[\r\n]|[\"'\\])|)"
)
_LINES = re.compile(r"[^\n]*(?:\n|\Z)")
_BASE64 = re.compile(r"[A-Za-z0-9+/=]+")
_KEY_HEADER = re.compile(r"[A-Za-z-]{3,20}: ")
FEWEST_DIGITS = 12
SHORT_KEY = 4096
MOST_STRAY = 8
_SURE_RUN = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40,}+={0,2}")
_OTHER_END = re.compile(rf"{_DASHES}[ ]?(?i:END )")
_LETTERS_OR_DIGITS = re.compile(r"[A-Za-z0-9]+")
_SHAPE_OF_BASE64 = re.compile(r"[0+/]+={0,2}")
_LONG_RUN = re.compile(r"[A-Za-z0-9+/]{20}")
_WORDS_FOR_PASSWORD = ("password", "passwd", "pass", "pwd", "passwort", "密码")

_HOST_BEFORE = re.compile(r"(?:\A|[\r\n`\"' :：])[ \t]{0,8}[\w.*-]{1,64}\Z")
_USER_AND_PASSWORD = re.compile(
    r"(?<![\w/:.@-])([A-Za-z][\w.-]{0,32}|[^\x00-\x7f\s]{0,6}(?:用户|用戶|账号|帐号|帳號|ユーザー|계정))[:：]([^\s:@/\"'<>，。；：、（）]{4,64}(?:@[^\s:@/\"'<>，。；：、（）.]{1,24})?)\Z"
)
_PASSWORD_BEHIND_ADDRESS = re.compile(
    r"@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,3}:(?![0-9]{1,5}/)([^\s:/\"'<>，。；]{6,64})(?=\s|\Z)"
)
_ADDRESS_BEFORE = re.compile(r"(?<![\w/:.@-])(?!git\Z)[A-Za-z][\w.+-]{0,63}\Z")
_BEFORE_ADDRESS = frozenset(
    (
        "mailto",
        "email",
        "e-mail",
        "mail",
        "to",
        "cc",
        "bcc",
        "from",
        "contact",
        "git",
        "author",
        "by",
        "acct",
        "sip",
        "xmpp",
    )
)
_LINE_OF_TOKEN = re.compile(rf"{WORD}{{8,}}(?:\.+{WORD}+)*")
_ANY_LINE_OF_TOKEN = re.compile(r"[A-Za-z0-9_.-]{4,}")
_CRYPT = r"[./A-Za-z0-9]"


# What stands around each line of a key in a list of strings, a quotation or a comment.
_AROUND_LINES = " \t\"'`,;+\\>#*|"


def _private_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the whole block; without an end, whatever still looks like a key."""
    body = match["body"]
    if match["end"] and (len(body) < SHORT_KEY or 20 * body.count(" ") < len(body)):
        return (match.span(),) if _LONG_RUN.search(body) else NOTHING
    length = max(_length_of_lines(body), _length_of_run(body))
    return ((match.start(), match.start("body") + length),) if length else NOTHING


def _putty_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the lines behind their number, up to the checksum."""
    length = max(_length_of_lines(match["body"]), _length_of_run(match["body"]))
    return ((match.start("body"), match.start("body") + length),) if length else NOTHING


def _length_of_run(body: str) -> int:
    """Measure the Base64 at the beginning, whatever joins its lines."""
    run = _KEY_BODY.match(body)
    return 0 if run is None else len(run[0].rstrip())


def _length_of_lines(body: str) -> int:
    """Measure the lines of Base64 at the beginning; one of them may have a stray character.

    A log may say the time and more before and behind each.
    """
    end, around = 0, ("", "")
    for line in _LINES.finditer(body):
        bare = line[0].strip()
        content = bare.strip(_AROUND_LINES)
        stray = len(_BASE64.sub("", content))
        is_short_last_line = end > 0 and content != "" and _BASE64.sub("", bare) == ""
        run = _SURE_RUN.search(content)
        if run:
            around = _shape(content[: run.start()]), _shape(content[run.end() :])
        if (
            run
            or is_short_last_line
            or (_LONG_RUN.search(content) and stray <= MOST_STRAY)
            or _is_alone_between(_shape(content), *around)
        ):
            end = line.start() + len(line[0].rstrip())
        elif (
            content
            and line.start()
            and not _KEY_HEADER.match(content)
            and not _OTHER_END.search(content)
        ):
            break
    return end


def _shape(text: str) -> str:
    """Return a text with one sign in place of each word and number."""
    return _LETTERS_OR_DIGITS.sub("0", text)


def _is_alone_between(shape: str, before: str, behind: str) -> bool:
    """Return whether one piece of Base64 stands between what a log says in each line."""
    if not (before or behind) or not (shape.startswith(before) and shape.endswith(behind)):
        return False
    return bool(_SHAPE_OF_BASE64.fullmatch(shape, len(before), len(shape) - len(behind)))


def _url_password(match: "re.Match[str]") -> Sequence[MatchSpan]:
    password = match["password"]
    if password is None:
        return (match.span("user"),) if is_random(match["user"], 16) else NOTHING
    if is_stand_in(password) or password.lower() in _WORDS_FOR_PASSWORD:
        return NOTHING
    return (match.span("password"),)


def _dsn_password(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `@tcp(` for the `user:password` of a data source name in Go."""
    before = match.string[max(0, match.start() - 160) : match.start()]
    pair = re.search(r"(?<![^\s\"'`=])[\w.-]{1,64}:([^\s:\"'`]{1,90})\Z", before)
    if pair is None or is_stand_in(pair[1]):
        return NOTHING
    return ((match.start() - len(pair[1]), match.start()),)


def _pgpass(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the last field of a line of `.pgpass`, whose first stands before the match."""
    head = match.string[max(0, match.start() - 80) : match.start()]
    if not _HOST_BEFORE.search(head) or is_stand_in(match[1]):
        return NOTHING
    return (match.span(1),)


def _login_at_host(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `@host` for `user:password`, outside of a URL."""
    text, end = match.string, match.start()
    behind = _PASSWORD_BEHIND_ADDRESS.match(text, end)
    if behind is not None and _ADDRESS_BEFORE.search(text, max(0, end - 65), end):
        is_sure = has_mixture(behind[1]) and (
            has_digit_and_letter(behind[1]) or has_sign(behind[1])
        )
        return (behind.span(1),) if is_sure and is_plain_value(behind[1]) else NOTHING
    pair = _USER_AND_PASSWORD.search(text, max(0, end - 110), end)
    if pair is None or pair[1].lower() in _BEFORE_ADDRESS or not is_plain_value(pair[2]):
        return NOTHING
    is_sure = has_digit_and_letter(pair[2]) or has_sign(pair[2])
    return (pair.span(2),) if is_sure else NOTHING


def _each_line(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a token that is broken at its dots line by line."""
    start = match.start()
    if "\n" not in match[0]:
        return (match.span(),)
    return [
        (start + line.start(), start + line.end()) for line in _LINE_OF_TOKEN.finditer(match[0])
    ]


def _wrapped_token(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the lines of a token that is broken anywhere, up to the last that nobody could read."""
    spans: list[MatchSpan] = []
    points = 0
    for line in _ANY_LINE_OF_TOKEN.finditer(match[0]):
        piece = line[0].rstrip(".")
        is_piece = not spans or is_random(max(piece.split("."), key=len), 12)
        is_last = points > 1 and has_mixture(piece) and has_digit_and_letter(piece)
        if points > 2 or not (is_piece or is_last):
            break
        points += piece.count(".") + (line[0] != piece and points + piece.count(".") < 2)
        spans.append((match.start() + line.start(), match.start() + line.start() + len(piece)))
    return spans if points == 2 and len(spans) > 1 else NOTHING


def _base32(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if re.search("[2-7]", match[1]) else NOTHING


_FORMAT_RULES = (
    RedactionRule(
        "pgpass_password",
        (":543", ":643", ":654", ":*:"),
        r":(?:[0-9]{2,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:((?:[^\s:\\]|\\.|(?<=\w)[ ](?=\w)){3,128}?)(?=[`\"']?[ \t]{0,4}(?:[\r\n]|\Z)|[`\"'][ ])",
        _pgpass,
        bounded=False,
    ),
    RedactionRule(
        "url_credentials",
        ("@",),
        r"@(?=[A-Za-z][A-Za-z0-9-]{1,30}(?:[\s/,;)]|\Z)|(?u:[^\x00-\x7f\s])|(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9])|[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}|localhost)",
        _login_at_host,
        bounded=False,
    ),
    RedactionRule(
        "password_hash",
        (
            "$apr1$",
            "$2a$",
            "$2b$",
            "$2y$",
            "$1$",
            "$5$",
            "$6$",
            "$y$",
            "$argon2i",
            "{sha}",
            "{ssha}",
            "{sha512-crypt}",
            "pbkdf2_sha256$",
            "pbkdf2:sha256:",
            "scrypt:",
        ),
        rf"(?:\$(?:apr1|1|5|6|y)\$(?:rounds=[0-9]{{1,9}}\$)?{_CRYPT}{{1,32}}\$(?:{_CRYPT}{{1,64}}\$)?{_CRYPT}{{20,120}}+"
        rf"|\$2[aby]\$[0-9]{{2}}\${_CRYPT}{{40,64}}+|\$argon2id?\$[A-Za-z0-9+/=$,]{{30,300}}+"
        r"|\{(?i:S?SHA)(?:512-crypt)?\}[A-Za-z0-9+/=$.]{20,140}+|pbkdf2[_:]sha256[$:][0-9]{3,8}\$[A-Za-z0-9+/]{4,64}\$[A-Za-z0-9+/=]{20,128}+"
        r"|scrypt:[0-9:]{3,20}\$[A-Za-z0-9+/]{4,64}\$[0-9a-f]{32,160}+)",
        whole,
        bounded=False,
    ),
    RedactionRule(
        "wifi_password",
        ("wifi:",),
        r"(?i)wifi:(?:[TSHR]:[^;\n]{0,64};){0,4}P:((?:[^;\\\n]|\\.){3,64}+)",
        unless_stand_in,
    ),
    RedactionRule(
        "otp_secret",
        ("otpauth://",),
        r"(?i)otpauth://[^\s\"'<>]{1,256}?[?&]secret=([A-Z2-7]{8,128}+=*)",
        first_group,
    ),
    RedactionRule(
        "otp_secret",
        ("totp", "2fa", "otp ", "otp_", "authenticator", "two-factor", "两步验证", "二次验证"),
        r"[^\n:：=]{2,40}?(?i:secret|seed|key|code|密钥|验证)[^\nA-Za-z0-9]{0,6}(?<![A-Za-z0-9])([A-Z2-7]{16,64}|[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,15}|[a-z2-7]{4}(?: [a-z2-7]{4}){3,15})(?![A-Za-z0-9])",
        _base32,
        bounded=False,
    ),
    RedactionRule(
        "otp_secret",
        (
            "2fa",
            "totp",
            "authenticator",
            "two-factor",
            "two-step",
            "两步验证",
            "兩步驗證",
            "二次验证",
            "双重验证",
            "二段階認証",
            "2段階認証",
            "2단계",
            "zwei-faktor",
            "double authentification",
            "doble factor",
            "verificación en dos pasos",
            "двухфактор",
            "手动输入",
            "手輸",
            "手输",
            "手入力",
            "setup key",
            "manual entry",
            "saisie manuelle",
        ),
        r"(?:[^\n]{0,120}\n){0,3}?[^\n]{0,120}?(?<![A-Za-z0-9])((?=[A-Z]{0,40}[ -]?[A-Z2-7 -]{0,40}[2-7])(?:[A-Z2-7]{4}(?:[ -][A-Z2-7]{4}){3,15}|[A-Z2-7]{16}|[A-Z2-7]{32})|(?=[a-z]{0,24}[2-7])[a-z2-7]{4}(?:[ -][a-z2-7]{4}){3,15})(?![A-Za-z0-9])",
        _base32,
        bounded=False,
    ),
    RedactionRule(
        "json_web_token",
        ("eyj",),
        rf"(?<!{WORD}[-_])eyJ{WORD}{{8,}}+\.(?:{_NEXT_LINE}(?=eyJ))?{WORD}{{8,}}+(?:(?:{_NEXT_LINE}{WORD}{{20,}}+){{0,40}}{_NEXT_LINE}\.{WORD}{{20,}}+|\.{_NEXT_LINE}{WORD}{{20,}}+|(?:\.{{1,2}}{WORD}++){{1,4}}|\.?)",
        _each_line,
    ),
    RedactionRule(
        "json_web_token",
        ("eyj",),
        rf"(?<!{WORD}[-_])eyJ{WORD}{{8,512}}+(?:\.{WORD}{{0,512}}+){{0,2}}(?:{_NEXT_LINE}[A-Za-z0-9_.-]{{4,128}}+(?![^\s\"',;])){{1,12}}",
        _wrapped_token,
        swallows=False,
    ),
    RedactionRule(
        "private_key_pem",
        ("-----begin ", "---- begin ", "–begin ", "—begin "),
        rf"{_DASHES}[ ]?(?i:BEGIN {KEY_NAME})[ ]?{_DASHES}"
        rf"(?P<body>[^-–—]*+(?:(?!{_DASHES}[ ]?(?i:BEGIN[ ]|END {KEY_NAME}))[-–—][^-–—]*+)*+)"
        rf"(?P<end>{_DASHES}[ ]?(?i:END {KEY_NAME})[ ]?{_DASHES})?",
        _private_key,
        bounded=False,
    ),
    RedactionRule(
        "private_key_pem",
        ("genkey", "genpsk"),
        r"gen(?:key|psk)[^\n]{0,80}\r?\n[ \t]{0,8}([A-Za-z0-9+/]{43}=)",
        first_group,
        bounded=False,
    ),
    RedactionRule(
        "private_key_putty",
        ("private-lines:",),
        r"Private-Lines: \d{1,6}+(?P<body>[^P]*+(?:(?!Private-(?:Lines|MAC))P[^P]*+)*+)",
        _putty_key,
        bounded=False,
    ),
    RedactionRule(
        "url_credentials",
        ("://", ":\\/\\/"),
        r":(?://|\\/\\/)(?P<user>[^\s/?#@:\"'<>\\`|，。；（）]{0,128}+)"
        r"(?::(?P<password>(?:[!#-&(-.0-;=?-\[\]-~]|[^\x00-\x7f\s，。；：、（）“”「」《》]){1,256}))?@(?=[A-Za-z0-9\[_%$])",
        _url_password,
        bounded=False,
        needs="@",
    ),
    RedactionRule(
        "url_credentials",
        ("@tcp(", "@unix("),
        r"@(?:tcp|unix)\(",
        _dsn_password,
        bounded=False,
    ),
)


LONGEST_WEB_KEY = 2400
MOST_LINES = 64
LONGEST_KEY_LINE = 96

_PRIVATE_PART = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,4}:\s{0,4}\"([A-Za-z0-9_-]{16,700})\"")
_HEX_LINE = re.compile(r"[ \t>|]{0,12}([0-9a-fA-F]{32,64})[ \t]{0,4}(?:\r?\n|\Z)")
_BASE64_LINE = re.compile(r"[ \t>|*+0-9:.]{0,12}?([A-Za-z0-9+/]{16,76}={0,2})[ \t|]{0,4}\r?\Z")


def _web_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the private parts of a JSON web key, which stand before or behind its type."""
    text, start = match.string, match.start()
    first = max(text.rfind("{", max(0, start - LONGEST_WEB_KEY), start), 0)
    last = text.find("}", start, start + LONGEST_WEB_KEY)
    last = last if last >= 0 else min(len(text), start + LONGEST_WEB_KEY)
    return [part.span(1) for part in _PRIVATE_PART.finditer(text, first, last)]


def _static_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the lines of hexadecimal digits in an element of a VPN's settings."""
    spans: list[MatchSpan] = []
    place = match.end()
    while len(spans) < MOST_LINES and (line := _HEX_LINE.match(match.string, place)):
        spans.append(line.span(1))
        place = line.end()
    return spans if len(spans) > 1 else NOTHING


def _tail(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the lines above the end of a block whose beginning is cut off."""
    return tuple(_lines_above(match.string, match.start()))


def _lines_above(text: str, end: int) -> Iterator[MatchSpan]:
    for _ in range(MOST_LINES):
        if not end or text[end - 1] != "\n":
            return
        start = text.rfind("\n", max(0, end - 1 - LONGEST_KEY_LINE), end - 1) + 1
        line = (
            _BASE64_LINE.match(text, start, end - 1) if start or end <= LONGEST_KEY_LINE else None
        )
        if line is None:
            return
        yield line.span(1)
        end = start


def _digits_of_network(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (
        (match.span(1),)
        if re.search("[0-9]", match[1]) and re.search("[a-fA-F]", match[1])
        else NOTHING
    )


_KEY_RULES = (
    RedactionRule(
        "labelled_secret",
        ('"kty"',),
        r"\"kty\"",
        _web_key,
        bounded=False,
    ),
    RedactionRule(
        "private_key_pem",
        ("<tls-auth>", "<tls-crypt>", "<tls-crypt-v2>", "<secret>", "<static-key>"),
        r"<[a-z0-9-]{6,16}>[ \t]{0,4}\r?\n(?:[ \t]{0,4}#[^\n]{0,80}\n){0,6}",
        _static_key,
        bounded=False,
    ),
    RedactionRule(
        "private_key_pem",
        ("-----end ",),
        rf"-----(?i:END {KEY_NAME})-----",
        _tail,
        bounded=False,
    ),
    RedactionRule(
        "labelled_secret",
        (
            "keypair",
            "id.json",
            "secret key",
            "secretkey",
            "secret_key",
            "private key",
            "privatekey",
            "private_key",
        ),
        r"(?i)(?:keypair|id\.json|(?:secret|private)[ _]?key)[^\n\[]{0,40}\n?[^\n\[]{0,16}\[\s{0,8}((?:[0-9]{1,3},\s{0,8}){31,95}[0-9]{1,3})\s{0,8}\]",
        first_group,
        bounded=False,
    ),
    RedactionRule(
        "wifi_password",
        ("wep", "psk", "pmk"),
        r"(?i)(?:wep|psk|pmk)[^\n0-9a-f]{0,4}(?:[a-z_ -]{0,8}[0-3]?)?(?:[ ]?\([a-z0-9 ]{1,16}\))?[ \t:=\"']{1,8}([0-9a-f]{64}|[0-9a-f]{58}|[0-9a-f]{26})(?![0-9a-z])",
        _digits_of_network,
    ),
)

_QUOTE = r"[\"'\\]{0,4}+"
_CREDENTIAL = r"([A-Za-z0-9+/=_.~:-]{8,4096}+)"
_COOKIE = re.compile(r"(?<![^;\s:=\"'\\])[ \t]*([^=;\s\"']{1,64})=([^;\s\"'\\，。]{8,4096})")
_REST_OF_COOKIE = re.compile(r"[^;\s\"'\\，。]*+")
_MORE_COOKIES = re.compile(r"[^\r\n\"'\\]{1,4096}+")
_SESSION_NAME = re.compile(
    r"sess|sid\b|auth|token|jwt|remember|log(?:ged_)?in|csrf|xsrf|passport|ticket|bduss|z_c0|secret"
    r"|credential|[._-]sid",
    re.IGNORECASE,
)


def _authorization(match: "re.Match[str]") -> Sequence[MatchSpan]:
    value = match[1].rstrip(".:")
    is_sure = is_secret(value) or is_random(value, 12)
    if is_stand_in(value) or not (is_sure or is_random(max(value.split("."), key=len), 16)):
        return NOTHING
    return ((match.start(1), match.start(1) + len(value)),)


def _bearer(match: "re.Match[str]") -> Sequence[MatchSpan]:
    value = match[1].rstrip(".:")
    is_sure = is_secret(value) or is_random(max(value.split("."), key=len), 16)
    if len(value) < 10 or is_words(value) or not is_sure:
        return NOTHING
    return ((match.start(1), match.start(1) + len(value)),)


def _basic(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take what decodes to `user:password`."""
    try:
        decoded = base64.b64decode(match[1], validate=True)
    except binascii.Error:
        return NOTHING
    return (match.span(1),) if b":" in decoded and decoded.isascii() else NOTHING


def _cookies(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return tuple(_session_values(match))


def _session_values(match: "re.Match[str]") -> Iterator[MatchSpan]:
    """Yield the values of session cookies, of a long header part by part.

    It is read on only while there are any, so that no part is read twice.
    """
    text, (place, end) = match.string, match.span(1)
    while place < end:
        last = place
        for cookie in _COOKIE.finditer(text, place, end):
            if _is_session(cookie[1], cookie[2]):
                last = _end_of_cookie(text, cookie.end(2))
                yield cookie.start(2), last
        more = _MORE_COOKIES.match(text, max(last, end)) if last > place else None
        place, end = (end, end) if more is None else (max(last, end), more.end())


def _end_of_cookie(text: str, end: int) -> int:
    rest = _REST_OF_COOKIE.match(text, end)
    return end if rest is None else rest.end()


def _is_session(name: str, value: str) -> bool:
    if is_stand_in(value):
        return False
    if _SESSION_NAME.search(name):
        if sum(map(str.isdigit, value)) >= FEWEST_DIGITS:
            return True
        return has_mixture(value) and not is_words(value)
    return is_random(value, 20)


def _named_session(match: "re.Match[str]") -> Sequence[MatchSpan]:
    if not is_random(match[1], 16):
        return NOTHING
    text, end = match.string, match.end()
    more = _MORE_COOKIES.match(text, end) if text.startswith(";", end) else None
    others = () if more is None else _COOKIE.finditer(text, end + 1, min(more.end(), end + 1024))
    return (match.span(1), *(one.span(2) for one in others if _is_session(one[1], one[2])))


def _named_cookie(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of `{"name": "sid", "value": "…"}`, as archives of HTTP have cookies."""
    return (match.span(2),) if _is_session(match[1], match[2]) else NOTHING


_HEADER_RULES = (
    RedactionRule(
        "basic_credentials",
        ('"auth"',),
        r"\"auth\"[ \t]{0,4}:[ \t]{0,4}\"([A-Za-z0-9+/]{8,512}+={0,2})\"",
        _basic,
        bounded=False,
    ),
    RedactionRule(
        "authorization_header",
        ("authorization: digest", 'authorization": "digest'),
        r"(?i)authorization[\"']?:[ \t]{0,4}[\"']?digest[ \t][^\r\n]{0,512}?response=\\?\"([0-9a-fA-F]{16,128})",
        first_group,
        bounded=False,
    ),
    RedactionRule(
        "session_cookie",
        ('"name"',),
        r"\"name\"[ \t]{0,4}:\s{0,4}\"([^\"\s]{2,64})\"\s{0,4},\s{0,32}\"value\"[ \t]{0,4}:\s{0,4}\"([^\"\s]{8,4096}+)",
        _named_cookie,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "authorization_header",
        ("authorization",),
        rf"(?i)authorization{_QUOTE}[ \t]{{0,4}}[:=：,][ \t]{{0,4}}{_QUOTE}"
        rf"(?:(?:bearer|basic|token|apikey|api-key|key|negotiate|ntlm|oauth|jwt)[ \t]+)?{_CREDENTIAL}",
        _authorization,
        bounded=False,
    ),
    RedactionRule(
        "bearer_token",
        ("bearer",),
        rf"(?i)bearer{_QUOTE}[ \t:=：]{{1,4}}{_QUOTE}{_CREDENTIAL}",
        _bearer,
        wraps=True,
    ),
    RedactionRule(
        "basic_credentials",
        ("basic ",),
        r"(?i)basic[ ]{1,2}([A-Za-z0-9+/]{12,512}+={0,2})",
        _basic,
    ),
    RedactionRule(
        "request_signature",
        ("signature=", "signature%3d"),
        r"(?i)signature(?:=|%3d)[\"']?([A-Za-z0-9+/=_%-]{40,512}+)",
        first_group,
        bounded=False,
    ),
    RedactionRule(
        "session_cookie",
        ("cookie",),
        r"(?i)cookies?[\"'\\]{0,4}+[ \t]{0,4}(?:,\s{0,32}[\"'\\]{0,4}value[\"'\\]{0,4}[ \t]{0,4})?[:=：]\s{0,4}[\"'\\]{0,4}+([^\r\n\"'\\]{8,4096}+)",
        _cookies,
        bounded=False,
    ),
    RedactionRule(
        "session_cookie",
        ("sessid=", "sessionid=", "connect.sid=", "session=", "sessdata=", "bduss="),
        r"(?i)[a-z.]{4,12}=([A-Za-z0-9%+/_.:~-]{16,1024}+)",
        _named_session,
        bounded=False,
    ),
)

RULES = (*_FORMAT_RULES, *_KEY_RULES, *_HEADER_RULES)
