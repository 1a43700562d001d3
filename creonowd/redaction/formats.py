"""Secrets in formats of their own: JSON web tokens, private keys, credentials in URLs."""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import NOTHING, WORD, MatchSpan, RedactionRule, first_group, whole
from creonowd.redaction.shape import (
    FUNCTION_WORDS,
    has_digit_and_letter,
    has_sign,
    is_plain_value,
    is_random,
    is_stand_in,
)
from creonowd.redaction.split_points import KEY_NAME

_DASHES = "(?:-{4,5}|[–—]{1,5})"
_KEY_LINES = r"(?:\s|\\+[nrt]|[\"'+,>|*]|[A-Za-z-]{3,20}: [^\n\\]{0,120})*+"
_KEY_BODY = re.compile(
    rf"(?:{_KEY_LINES}[A-Za-z0-9+/=]{{16,}}+)+{_KEY_LINES}(?:[A-Za-z0-9+/]{{1,15}}+=*+(?=\s*\Z|[ \t]*[\r\n]|[\"'\\])|)"
)
_LINES = re.compile(r"[^\n]*(?:\n|\Z)")
_BASE64 = re.compile(r"[A-Za-z0-9+/=]+")
_KEY_HEADER = re.compile(r"[A-Za-z-]{3,20}: ")
SHORT_KEY = 4096
MOST_STRAY = 8
_LONG_RUN = re.compile(r"[A-Za-z0-9+/]{20}")
_WORDS_FOR_PASSWORD = ("password", "passwd", "pass", "pwd", "passwort", "密码")

LONGEST_PHRASE = 400
MOST_CODES = 24
_HOST_BEFORE = re.compile(r"(?:\A|[\r\n])[ \t]{0,8}[\w.*-]{1,64}\Z")
_USER_AND_PASSWORD = re.compile(
    r"(?<![\w/:.@-])([A-Za-z][\w.-]{0,32}):([^\s:@/\"'<>，。；：、（）]{4,64})\Z"
)
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
_TO_PHRASE = re.compile(
    r"(?:[^A-Za-z0-9\r\n\u4e00-\u9fff]{1,4}|s\b|(?:is|are|was|words?|list|below|follows|backup|phrase|seed|wallet|recovery)\b"
    r"|(?<=[ ])for (?:the |my |our |his |her |)[a-z]{2,16}(?=[ :])|如下|是|为|[(（][^()（）\n]{0,24}[)）]){0,8}\s{0,6}[\"'“「]?"
)
_NEXT_WORD = r"(?:[ \t,]{1,3}|[ \t]{0,4}\r?\n[ \t>*-]{0,6})"
_NUMBER = r"(?:[0-9]{1,2}[.):]?[ \t]{1,2})"
_PHRASE = re.compile(
    rf"(?<![A-Za-z]){_NUMBER}?[a-z]{{3,8}}(?:{_NEXT_WORD}{_NUMBER}?[a-z]{{3,8}}){{11,23}}(?![A-Za-z])"
    r"|[\u4e00-\u9fff](?:[ \u3000,，、]{1,2}[\u4e00-\u9fff]){11,23}(?![\u4e00-\u9fff])"
)
_NUMBERED_PHRASE = re.compile(
    rf"{_NUMBER}[a-z]{{3,8}}(?:{_NEXT_WORD}{_NUMBER}[a-z]{{3,8}}){{11,23}}(?![A-Za-z])"
)
_PHRASE_WORD = re.compile(r"[a-z]{3,8}|[\u4e00-\u9fff]")
_CODE = re.compile(
    r"[ \t]{0,2}[:：]?(?:[\s,、，;]{1,6}|)(?:(?:[-*•]|[0-9]{1,2}[.)])[ \t]{1,3})?"
    r"([A-Za-z0-9]{3,10}(?:-[A-Za-z0-9]{3,10}){0,3})(?=[\s,、;，。]|\Z)"
)
_CRYPT = r"[./A-Za-z0-9]"


def _private_key(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the whole block; without an end, whatever still looks like a key."""
    body = match["body"]
    if match["end"] and (len(body) < SHORT_KEY or 20 * body.count(" ") < len(body)):
        return (match.span(),) if _LONG_RUN.search(body) else NOTHING
    length = max(_length_of_lines(body), _length_of_run(body))
    return ((match.start(), match.start("body") + length),) if length else NOTHING


def _length_of_run(body: str) -> int:
    """Measure the Base64 at the beginning, whatever joins its lines."""
    run = _KEY_BODY.match(body)
    return 0 if run is None else len(run[0].rstrip())


def _length_of_lines(body: str) -> int:
    """Measure the lines of Base64 at the beginning; one may have something stray in it."""
    end = 0
    for line in _LINES.finditer(body):
        content = line[0].strip()
        stray = len(_BASE64.sub("", content))
        is_short_last_line = end > 0 and content != "" and not stray
        if is_short_last_line or (_LONG_RUN.search(content) and stray <= MOST_STRAY):
            end = line.start() + len(line[0].rstrip())
        elif content and not _KEY_HEADER.match(content):
            break
    return end


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
    pair = _USER_AND_PASSWORD.search(text, max(0, end - 110), end)
    if pair is None or pair[1].lower() in _BEFORE_ADDRESS or not is_plain_value(pair[2]):
        return NOTHING
    is_sure = has_digit_and_letter(pair[2]) or has_sign(pair[2])
    return (pair.span(2),) if is_sure else NOTHING


def _recovery_phrase(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the twelve words or more behind their name, or the numbered ones before it."""
    text, start = match.string, match.start()
    between = _TO_PHRASE.match(text, match.end())
    found = None if between is None else _PHRASE.match(text, between.end())
    if found is None and text.rfind("(", max(0, start - 24), start) >= 0:
        found = _NUMBERED_PHRASE.search(text, max(0, start - LONGEST_PHRASE), start)
    if found is None:
        return NOTHING
    words = list(_PHRASE_WORD.finditer(text, *found.span()))
    if sum(word[0] in FUNCTION_WORDS for word in words) > 1:
        return NOTHING
    if re.search("[0-9]", found[0]) is None:
        return (found.span(),)
    return [word.span() for word in words]


def _backup_codes(match: "re.Match[str]") -> Sequence[MatchSpan]:
    spans: list[MatchSpan] = []
    place = match.end()
    while len(spans) < MOST_CODES and (code := _CODE.match(match.string, place)):
        if not re.search("[0-9]", code[1]) or is_stand_in(code[1]):
            break
        spans.append(code.span(1))
        place = code.end()
    return spans


RULES = (
    RedactionRule(
        "recovery_phrase",
        (
            "recovery phrase",
            "recovery words",
            "seed phrase",
            "seed words",
            "seed =",
            "seed:",
            "mnemonic",
            "backup phrase",
            "secret phrase",
            "wallet words",
            "12-word",
            "24-word",
            "12 words",
            "24 words",
            "助记词",
            "助記詞",
            "恢复短语",
            "恢復短語",
            "种子短语",
            "種子短語",
            "ニーモニック",
            "니모닉",
            "복구 구문",
        ),
        r"(?i)(?:(?:recovery|seed|backup|secret)[ ](?:phrase|words)|seed[ ]?[:=]|mnemonic|wallet words|(?:12|24)[- ]words?"
        "|助记词|助記詞|恢复短语|恢復短語|种子短语|種子短語|ニーモニック|니모닉|복구 구문)",
        _recovery_phrase,
        bounded=False,
    ),
    RedactionRule(
        "recovery_code",
        (
            "backup code",
            "recovery code",
            "scratch code",
            "备用验证码",
            "备用码",
            "恢复码",
            "備用碼",
            "恢復碼",
            "バックアップコード",
            "복구 코드",
            "백업 코드",
        ),
        r"(?i)(?:(?:backup|recovery|scratch)[ ]codes?|备用验证码|备用码|恢复码|備用碼|恢復碼|バックアップコード|복구 코드|백업 코드)",
        _backup_codes,
        bounded=False,
    ),
    RedactionRule(
        "pgpass_password",
        (":543", ":643", ":*:"),
        r":(?:[0-9]{2,5}|\*):[^:\s]{1,64}:[^:\s]{1,64}:([^\s:]{3,128})(?=[ \t]{0,4}(?:[\r\n]|\Z))",
        _pgpass,
        bounded=False,
    ),
    RedactionRule(
        "url_credentials",
        ("@",),
        r"@(?=(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9])|[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,5}|localhost)",
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
        first_group,
    ),
    RedactionRule(
        "otp_secret",
        ("otpauth://",),
        r"(?i)otpauth://[^\s\"'<>]{1,256}?[?&]secret=([A-Z2-7]{8,128}+=*)",
        first_group,
    ),
    RedactionRule(
        "json_web_token",
        ("eyj",),
        rf"(?<!{WORD}[-_])eyJ{WORD}{{8,}}+\.{WORD}{{8,}}+(?:(?:\.{{1,2}}{WORD}++){{1,4}}|\.?)",
        whole,
    ),
    RedactionRule(
        "private_key_pem",
        ("-----begin ", "---- begin ", "–begin ", "—begin "),
        rf"{_DASHES}[ ]?BEGIN {KEY_NAME}[ ]?{_DASHES}"
        rf"(?P<body>[^-–—]*+(?:(?!{_DASHES}[ ]?(?:BEGIN|END)[ ])[-–—][^-–—]*+)*+)"
        rf"(?P<end>{_DASHES}[ ]?END {KEY_NAME}[ ]?{_DASHES})?",
        _private_key,
        bounded=False,
    ),
    RedactionRule(
        "private_key_putty",
        ("private-lines:",),
        r"Private-Lines: \d{1,3}((?:\s{1,3}[A-Za-z0-9+/=]{16,80}+)+)",
        first_group,
    ),
    RedactionRule(
        "url_credentials",
        ("://", ":\\/\\/"),
        r":(?://|\\/\\/)(?P<user>[^\s/?#@:\"'<>\\`|，。；（）]{0,128}+)"
        r"(?::(?P<password>[!#-&(-.0-;=?-\[\]-~]{1,256}))?@(?=[A-Za-z0-9\[_%$])",
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
