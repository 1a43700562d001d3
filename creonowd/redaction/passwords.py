"""Short and wordy passwords, which only an unmistakable label or sentence gives away.

`labels` finds values that look like secrets behind any name of one. Here the name leaves no doubt,
so that the value may be `sunshine` or `4821`; in exchange it must stand where only a value can.
"""

import re
import string
from collections.abc import Sequence

from creonowd.redaction.labels import Strength, strength_of, trim_bare
from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule
from creonowd.redaction.shape import (
    FUNCTION_WORDS,
    has_digit_and_letter,
    has_sign,
    is_common_value,
    is_plain_value,
    names_a_secret,
)

LONGEST_LINE_HEAD = 120

ENGLISH_LABELS = (
    "pass", "pwd", "kennwort", "wachtwoord", "mot de passe", "contraseña", "contrasena", "senha", "пароль", "pw:", "pw：", "pw=", "pw =", "pw is ", "pw ", "mdp",
    "psk=", "psk =", "psk:", "secret=", "secret =", "secret:", 'secret"', "secret'",
)  # fmt: skip
FOREIGN_LABELS = ("mot de passe", "contraseña", "contrasena", "senha", "пароль", "wachtwoord")
HAN_LABELS = (
    "密码", "密碼", "口令", "提取码", "提取碼", "通行码", "访问码", "验证码", "驗證碼", "动态码", "校验码",
    "パスワード", "パスコード", "暗証番号", "合言葉", "認証コード", "確認コード",
    "비밀번호", "비번", "암호", "패스워드", "인증번호", "인증코드", "인증 코드",
)  # fmt: skip
SPACED_LABELS = tuple(
    first + gap + second
    for first, second in ("密码", "密碼", "口令", "密钥", "密鑰", "秘钥")
    for gap in (" ", "  ", "\u3000", "\u3000\u3000")
)

_SPACE = r"[ \t\u3000]"
_CLOSE = r"[*_`\"”」』】\\\]'’]{0,6}+"
_ASIDE = rf"(?:[ \t]?[(（][^()（）\n]{{0,24}}[)）]|[ \t]\[[^\[\]\n]{{0,24}}\]|)+{_CLOSE}"
_ASSIGN = rf"{_SPACE}{{0,16}}(?:={{1,3}}>?|:=?(?!//)|：|＝|->|→)(?:\*\*|__|){_SPACE}{{0,16}}"
_CLAUSE = r"(?P<clause>[ \t](?:for|of|to|für|do|da|de|del|du)(?:[ \t][\w@.'’-]{1,40}){1,4}?)?"
_IS = (
    r"(?:['’]s|[ \t](?:is|was|ist|lautet|est|es|é|has been|used to be)(?:[ \t](?:now|still|set to|changed to|reset to))?"
    r"|[ \t](?:re)?set to|[ \t]changed to)[ \t]?[:：]?[ \t]{0,4}"
)
_HAN_IS = (
    r"[我你他她]?(?:就是|还是|還是|是|(?:已经?|被)?(?:重置|更新|修改|变更|變更|更改|设置|設置|設定|[设設改换換变變])"
    r"(?:成了?|为了?|為)|叫做?|写的是|为|爲|為|は|が|는|은|가|이|를)[ \t]{0,2}[:：]?[ \t]{0,2}"
)
_VALUE = (
    r"(?!(?i:pass|pwd|secret|token|key)[a-z._-]{0,16}+[=:])"
    r"(?:(?P<opening>\\?[\"'`“‘「『《])(?P<quoted>[^\s\"'`“”‘’「」『』《》)，。、：\\][^\n\"'`“”‘’「」『』《》\\]{0,63})"
    r"\\?[\"'`”’」』》]|(?P<bare>[!#-&(-~]{3,64}+))"
)
_WORDS_AFTER = re.compile(r"((?:[ ][A-Za-z0-9][A-Za-z0-9'’.]{0,19}){1,7})[ \t]*(?=\r?\n|\Z)")
_ENDS = re.compile(
    r"[\"'`*]{0,3}(?:[ \t]{0,4}(?:\r?\n|\Z)|[ \t]{2}|[,，。；;)）】」』”|&<、]|[.!](?:\s|\Z)"
    r"|[ \t]+(?:[#/(（<|;]|//|[A-Za-z]{2,16}[:：=]|https?:|[^\x00-\x7f])|[^\x00-\x7f])"
)
_COUNTS = re.compile(
    r"[ ]?(?:[-–~至到][ ]?\d|[位个個字次元年月日号號章层層分秒天%]|文字|桁|자리|자\b|characters|chars|digits|letters"
    r"|times|attempts|tries|minutes|days|bits?\b)"
)
_DOUBT = re.compile(r"[\"'”’」』]?[ ]?(?:吗|么|嗎|[?？]|か[？?。]|인가|이냐)")
_LABEL_ALONE = re.compile(r"[\s#*>\-`\"'{\[(\w.$]{0,60}\Z")
_CALL = re.compile(r"[(]|\b(?:def|const|let|var|return|if|self)\b")
_NEXT_SETTING = re.compile(r";[A-Za-z][A-Za-z ]{1,24}=")
_NEXT_FLAG = re.compile(r"[\"']?(?:[ \t]+-|[ \t]*(?:[\r\n]|\Z))")
_PLAIN_WORD_BEFORE = re.compile(r"[a-z] \Z")
_MEASURE = re.compile(r"[0-9]+(?:[./:][0-9]+)?[A-Za-z%]{0,2}\Z")
_CREDENTIALS = re.compile(
    r"(?:login|log in|sign in|user(?:name)?|machine|account|as|default)[ \t:=]{1,3}"
    r"(?:with |as |name )?(?!and\b|your\b|the\b|with\b|a\b)[^\s,;]{1,64}[ \t,;/]+(?:and |with |the |your )*\Z",
    re.IGNORECASE,
)
_VERBS_OF_USE = frozenset(
    [
        "use",
        "using",
        "set",
        "try",
        "enter",
        "chose",
        "choose",
        "pick",
        "keep",
        "put",
        "make",
        "take",
    ]
)
_HAN_VERBS_OF_USE = frozenset("用以拿把将將")
_LETTERS = string.ascii_letters
_PRINTABLE = string.ascii_letters + string.digits + string.punctuation
_QUOTED_PLAIN = r"[\"'“‘`「]?([!#-&(-~]{3,64}?)[\"'”’`」]?"
_FROM_TO = re.compile(
    rf"[\w \t'’]{{0,24}}?[ \t]from[ \t]+{_QUOTED_PLAIN}[ \t]+to[ \t]+{_QUOTED_PLAIN}(?=[\s,.;!?，。；]|\Z)",
    re.IGNORECASE,
)
_HAN_FROM_TO = re.compile(
    rf"[^\n\x00-\x7f]{{0,4}}?(?:从|由|從|自)[ ]?{_QUOTED_PLAIN}[ ]?(?:改|换|換|变|變|更新|修改|变更|更改)"
    rf"(?:成了?|为了?|為|到)[ ]?{_QUOTED_PLAIN}(?=[\s,.;!?]|[^\x00-\x7f]|\Z)"
)


def _english(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text, name, start = match.string, match["name"], match.start("name")
    line_start = text.rfind("\n", max(0, start - LONGEST_LINE_HEAD), start) + 1
    head = text[max(line_start, start - LONGEST_LINE_HEAD) : start]
    whole_name = _name_before(head) + name
    if name.lower() not in FOREIGN_LABELS and strength_of(whole_name) < Strength.SECRET:
        return NOTHING
    if whole_name.lower() == "pass" and not match["assign"] and not head.endswith(", "):
        return NOTHING
    if match["from"] is not None:
        return _change(_FROM_TO.match(text, match.end("name")))
    kind, value, (first, last) = _value_of(match)
    if match["assign"] is not None:
        sure = _is_compound(whole_name) or not name.lower().startswith("secret")
        if name.lower() == "pass" == whole_name.lower():
            sure = not _PLAIN_WORD_BEFORE.search(head) and not _MEASURE.match(value)
        taken = sure and _is_assigned(match, kind, value, head)
        if (
            sure
            and not taken
            and kind == "bare"
            and (end := _end_of_phrase(text, value, last, head))
        ):
            taken, last = True, end
    elif match["prose"] is not None:
        taken = _is_told(match, value, last)
    else:
        taken = _stands_apart(match, kind, value, head)
    return ((first, last),) if taken else NOTHING


def _name_before(head: str) -> str:
    return head[
        len(head.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.$-")) :
    ]


def _is_compound(name: str) -> bool:
    return len(name) > len("secret") and strength_of(name) >= Strength.SECRET


def _value_of(match: "re.Match[str]") -> tuple[str, str, MatchSpan]:
    kind = "quoted" if match["quoted"] is not None else "bare"
    value, first = match[kind], match.start(kind)
    if kind == "bare":
        value = trim_bare(value, in_query=match.string[max(0, match.start() - 1)] in "?&")
        value = value.rstrip("!?,;") if value[:-1].isalpha() else value
    return kind, value, (first, first + len(value))


def _is_assigned(match: "re.Match[str]", kind: str, value: str, head: str) -> bool:
    """Return whether what stands behind `password:` is a password, however plain."""
    if len(value) < 3 or not is_plain_value(value):
        return False
    if match["assign"].startswith(",") and not match["name"].isupper():
        return False
    if kind == "quoted":
        return _is_quoted_value(value, phrase="phrase" in match["name"].lower())
    text, last = match.string, match.start(kind) + len(value)
    if value.isdigit():
        return len(value) <= 20 and not _COUNTS.match(text, last)
    if has_sign(value) and len(value) >= 6:
        return True
    in_shell = match["assign"] == "=" and (match["name"].isupper() or _is_flag(head))
    is_alone = in_shell or _ENDS.match(text, last) is not None
    return is_alone and (has_digit_and_letter(value) or _is_word(text, value, last, head))


def _is_word(text: str, value: str, last: int, head: str) -> bool:
    """Return whether a word is no part of code or of a sentence."""
    if _CALL.search(head) or names_a_secret(value):
        return False
    if text[last : last + 1] in {";", "("} and not _NEXT_SETTING.match(text, last):
        return False
    return FUNCTION_WORDS.isdisjoint(re.split("[-_.]", value.lower()))


def _is_quoted_value(value: str, *, phrase: bool) -> bool:
    words = value.lower().split()
    if len(words) == 1:
        is_variable = names_a_secret(value) and re.search("[_.-]|[a-z][A-Z]", value) is not None
        return not is_variable or has_digit_and_letter(value)
    if len(words) > 8 or any(map(is_common_value, words)):
        return False
    return phrase or FUNCTION_WORDS.isdisjoint(words)


def _end_of_phrase(text: str, value: str, last: int, head: str) -> int:
    """Find the end of `blue horse tin roof`: words to the end of the line that are no sentence."""
    more = _WORDS_AFTER.match(text, last)
    if more is None or not value.isalpha() or not _LABEL_ALONE.match(head):
        return 0
    words = [value.lower(), *more[1].lower().split()]
    if not FUNCTION_WORDS.isdisjoint(words) or any(map(is_common_value, words)):
        return 0
    is_phrase = len(words) >= 4 or (len(words) == 3 and any(word.isdigit() for word in words))
    return more.end(1) if is_phrase else 0


def _is_told(match: "re.Match[str]", value: str, last: int) -> bool:
    """Ask of a value in a sentence that no word could stand there: “the password is swordfish” is fiction."""
    if not is_plain_value(value) or _DOUBT.match(match.string, last):
        return False
    if value.isdigit():
        return 4 <= len(value) <= 12 and not _COUNTS.match(match.string, last)
    return has_digit_and_letter(value) and len(value) >= 5


def _stands_apart(match: "re.Match[str]", kind: str, value: str, head: str) -> bool:
    """Take `password Xy12z` and, beside a user, any word: `login bo password walnut`."""
    if len(value) < 4 or not is_plain_value(value) or _DOUBT.match(match.string, match.end()):
        return False
    last = match.start(kind) + len(value)
    if value.isdigit():
        return match["name"].lower() == "passcode" and not _COUNTS.match(match.string, last)
    if has_digit_and_letter(value) or (has_sign(value) and len(value) >= 6):
        return True
    if head.lower().endswith("require"):
        return not names_a_secret(value)
    if _is_flag(head) and not names_a_secret(value):
        return _NEXT_FLAG.match(match.string, last) is not None
    beside_user = _CREDENTIALS.search(head.rstrip(", ") + " ") is not None
    return (
        (beside_user or (kind == "quoted" and match["name"].isupper()))
        and not names_a_secret(value)
        and value.lower() not in FUNCTION_WORDS
        and _ENDS.match(match.string, match.end() if kind == "quoted" else last) is not None
    )


def _is_flag(head: str) -> bool:
    """Return whether the name that ends here is a flag such as `--password`."""
    return _name_before(head).startswith("--")


def _change(match: "re.Match[str] | None") -> Sequence[MatchSpan]:
    """Take both values of “changed from X to Y”, if one of them cannot be a word."""
    if match is None or not all(map(is_plain_value, match.groups())):
        return NOTHING
    if not any(map(has_digit_and_letter, match.groups())):
        return NOTHING
    return (match.span(1), match.span(2))


def _use_as(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from “as the password” for the value, and before it for a verb such as “use”."""
    text, end = match.string, match.start()
    head = text[max(0, end - 80) : end].rstrip(" \"'”’`」,")
    before = head.rstrip(_PRINTABLE)
    value = head[len(before) :].lstrip("\"'`")
    first = max(0, end - 80) + len(head) - len(value)
    before = before.rstrip(" \"'“‘「")
    is_english = text[end : end + 4].lower() == " as "
    if is_english:
        word = before[len(before.rstrip(_LETTERS)) :].lower()
        is_used = word in _VERBS_OF_USE
    else:
        is_used = before[-1:] in _HAN_VERBS_OF_USE
    if not is_used or not 4 <= len(value) <= 64:
        return NOTHING
    is_sure = has_digit_and_letter(value) or has_sign(value)
    if is_english and not is_sure:
        is_sure = len(value) >= 6 and value.islower() and value not in FUNCTION_WORDS
    if not is_sure or not is_plain_value(value) or names_a_secret(value):
        return NOTHING
    return ((first, first + len(value)),)


def _han(match: "re.Match[str]") -> Sequence[MatchSpan]:
    text = match.string
    if match["from"] is not None:
        return _change(_HAN_FROM_TO.match(text, match.end("name")))
    kind, value, (first, last) = _value_of(match)
    if not is_plain_value(value, code=False) or _DOUBT.match(text, last):
        return NOTHING
    if value.isdigit():
        fewest = 3 if match["assign"] or match["prose"] else 4
        taken = fewest <= len(value) <= 20 and not _COUNTS.match(text, last)
    elif has_digit_and_letter(value) or (has_sign(value) and len(value) >= 5):
        taken = not _COUNTS.match(text, last)
    else:
        chain = "-" in value.strip("-")
        taken = (match["assign"] is not None or chain) and _is_han_word(text, kind, value, last)
    return ((first, last),) if taken else NOTHING


def _is_han_word(text: str, kind: str, value: str, last: int) -> bool:
    if len(value) < 3 or not value.isascii() or names_a_secret(value):
        return False
    if not FUNCTION_WORDS.isdisjoint(re.split("[-_. ]", value.lower())):
        return False
    return kind == "quoted" or _ENDS.match(text, last) is not None


_AS_PASSWORD = tuple(
    f" as {whose}{which}{name}"
    for whose in ("", "the ", "your ", "my ", "our ", "a ")
    for which in ("", "new ", "temporary ")
    for name in ("password",)
)
_AS_HAN_PASSWORD = tuple(
    f"{how}{which}{name}"
    for how in ("作为", "作為", "作", "做", "当", "为", "為")
    for which in ("", "登录", "新")
    for name in ("密码", "密碼", "口令")
)
# `labels` takes these values, and in a third of the time.
_LEFT_TO_LABELS = r"(?!p(?:ass)?w(?:or)?d[:=](?:pass|pwd|[ ]?[*]|[ ]?(?=[A-Za-z0-9]{6,64}(?:[\s,;&]|\Z))[A-Za-z]{0,8}[0-9][A-Za-z0-9]{5,63}))"
_ENGLISH_NAME = (
    rf"{_LEFT_TO_LABELS}(?P<name>password|passwords|passwd|passphrase|passcode|pwd|psk|passwort|kennwort|wachtwoord"
    r"|mot de passe|contrase[ñn]a|senha|[Пп]ароль|pass|pw|mdp|secret)(?![A-Za-z0-9_,;|\r\n-])"
)


def _pin(match: "re.Match[str]") -> Sequence[MatchSpan]:
    value = match[1].rstrip("-")
    is_code = sum(map(str.isdigit, value)) >= 4 and not _COUNTS.match(match.string, match.end())
    return ((match.start(1), match.start(1) + len(value)),) if is_code else NOTHING


def _beside_user(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the second of `user / value`, if it cannot be a word or stands behind `user/password:`."""
    value = trim_bare(match[1], in_query=False).rstrip("!?,;")
    if not is_plain_value(value) or value[0] in "/\\" or len(value) < 3:
        return NOTHING
    named = match[0][0] == "/" and not is_common_value(value)
    is_sure = named or has_digit_and_letter(value) or (has_sign(value) and len(value) >= 6)
    return ((match.start(1), match.start(1) + len(value)),) if is_sure else NOTHING


def _before_names(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `(user/password)` for both."""
    first = max(0, match.start() - LONGEST_LINE_HEAD)
    found = _PAIR_BEFORE.search(match.string, first, match.start())
    if found is None or not is_plain_value(found[1]) or not has_digit_and_letter(found[1]):
        return NOTHING
    return (found.span(1),)


_PAIR_BEFORE = re.compile(r"(?<![\w/])[\w.@+-]{1,64}[ ]?[/:][ ]?([!-~]{4,64})[ \t]{0,4}[(（]\Z")
_PINS = (
    "pin is ",
    "pin: ",
    "pin:",
    "pin：",
    "pin=",
    "pin =",
    "pin code",
    "pin number",
    "pin's ",
    "pin was ",
)
_CODES = tuple(
    f"{place} code"
    for place in (
        "door", "gate", "wifi", "wi-fi", "access", "entry", "alarm", "security", "unlock", "login",
        "verification", "one-time", "safe", "lock", "confirmation", "2fa", "sms",
    )
)  # fmt: skip
RULES = (
    RedactionRule(
        "labelled_password",
        ENGLISH_LABELS,
        rf"(?i){_ENGLISH_NAME}(?:(?P<from>(?=[\w \t'’]{{0,24}}[ \t]from[ \t]))"
        rf"|{_ASIDE}{_CLAUSE}(?>(?P<assign>{_ASSIGN}|(?<=[\"']),[ \t]{{0,2}}(?=[\"']))|(?P<prose>{_IS})"
        rf"|(?(clause)(?!)|[ \t]{{1,8}}(?:[-–—]{{1,2}}[ \t]{{1,4}}|[057][ \t])?)){_VALUE})",
        _english,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "labelled_password",
        (*_AS_PASSWORD, *_AS_HAN_PASSWORD),
        "",
        _use_as,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        (*HAN_LABELS, *SPACED_LABELS),
        rf"(?P<name>{'|'.join((*HAN_LABELS, *SPACED_LABELS))})(?:(?P<from>(?=[^\n\x00-\x7f]{{0,4}}[从由從自][ ]?[\"'“‘`「]?[!-~]))"
        rf"|{_ASIDE}(?>(?P<assign>{_ASSIGN})|{_SPACE}{{0,4}}(?P<prose>{_HAN_IS})|{_SPACE}{{0,4}})"
        rf"(?:[A-Za-z0-9_.@-]{{2,40}}[ \t]{{0,2}}/[ \t]{{0,2}})?{_VALUE})",
        _han,
        bounded=False,
        swallows=False,
    ),
    RedactionRule(
        "labelled_pin",
        _PINS,
        r"(?i)pin(?: code| number)?(?:['’]s[ ]|[ \t]{0,2}(?:is|was|[:：=])[ \t]{0,2})[\"“]?([0-9]{4,8})(?!\w|[.:-]\d|[ ]?%)",
        _pin,
    ),
    RedactionRule(
        "labelled_pin",
        _CODES,
        r"(?i)[a-z0-9-]{2,12} code(?:[ \t]{0,2}(?:is|was|[:：=])|)[ \t]{1,2}[\"“]?([A-Za-z0-9#*-]{4,16})(?!\w|[.:]\d)",
        _pin,
    ),
    RedactionRule(
        "credential_pair",
        (
            "creds:",
            "creds：",
            "credentials:",
            "credentials：",
            "login:",
            "login：",
            "/pass:",
            "/pass：",
            "/password:",
            "/password：",
            "/pwd:",
            "/pw:",
            "/口令：",
            "/口令:",
        ),
        r"(?i)[/a-z口令]{3,12}[:：][ \t]{0,4}[\w.@+-]{1,64}[ \t]?[:/][ \t]?([!-~]{3,64}+)",
        _beside_user,
        bounded=False,
    ),
    RedactionRule(
        "credential_pair",
        (
            "log in with ",
            "login with ",
            "sign in with ",
            "logged in with ",
            "log in as ",
            "sign in as ",
            "log in using ",
            "login as ",
        ),
        r"(?i)(?:log|sign)[a-z]{0,4}[ ]?in (?:with|as|using) (?:the )?[\w.@+-]{1,64}"
        r"(?: / |/| and | with |, |: )(?:the )?(?:password )?[\"'“]?([!-~]{4,64}+)",
        _beside_user,
    ),
    RedactionRule(
        "credential_pair",
        ("admin / ", "root / ", "administrator / ", "admin/", "root/"),
        r"(?i)(?:admin|root|administrator)[ ]?/[ ]?([!-.0-~]{5,64}+)(?=[\s，。；、]|\Z)",
        _beside_user,
    ),
    RedactionRule(
        "credential_pair",
        ("username/password", "user/pass", "login/pass", "用户名/密码", "账号/密码"),
        "(?i)user(?:name)?/pass(?:word)?|login/pass(?:word)?|(?:用户名|账号)/密码",
        _before_names,
        bounded=False,
    ),
)
