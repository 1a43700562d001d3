"""Labels of a user and a password together, of whose values only the second is secret: `login/password: bob / …`."""

import re
from collections.abc import Sequence

from creonowd.redaction.labels import trim_bare
from creonowd.redaction.rules import NOTHING, PLACEHOLDER, MatchSpan, RedactionRule
from creonowd.redaction.shape import (
    Oddity,
    has_digit_and_letter,
    has_sign,
    is_blank,
    is_latin,
    is_plain_value,
    oddity,
    unaccented,
)

_USER = (
    r"(?:user(?:[ _-]?name|[ _-]?id)?|login|account|e-?mail|benutzer(?:name)?|konto|identifiants?|utilisateur|compte|usuario|cuenta|correo|utente"
    r"|usuário|conta|gebruiker(?:snaam)?|użytkownik|логин|юзер|id)"
)
_EASTERN_USER = (
    "(?:用户名?|用戶名?|[账帐帳賬][号號户戶]|登录名|ユーザー名?|アカウント|아이디|계정|id)"
)
_USER_AND = re.compile(
    rf"(?:{_USER}[ ]?(?:/|&|\+|、|,|，|·|[ ](?:and|und|et|y|e|en|i|и)[ ])|{_EASTERN_USER}[ ]?(?:/|&|\+|、|，|或|与|與|和|及|と|및|와|과)?)"
    r"[ ]?(?:the |la |le |das |el |o )?\Z",
    re.IGNORECASE,
)
_SIGN = "[!-.0-~\u00c0-\u024f\u0400-\u04ff]"
_PAIR = re.compile(
    r"[\"'“`(]?[\w.@+-]{1,64}[\"'”`]?(?:[ ]{0,2}(?:[/,;|:·，、；→+]|->|—|–)[ ]{0,2}|[ ]{1,8}|\t)[\"'“`]?"
    rf"(?P<value>{_SIGN}{{3,64}}?)(?=[\"'”`)）.,;]{{0,3}}(?:\s|\Z|[，。；]))"
)


def password_of_pair(head: str, text: str, place: int) -> MatchSpan | None:
    """Return where the password of a pair is, if `head` ends in the name of a user and values are at `place`.

    It may be redacted already.
    """
    if _USER_AND.search(head) is None:
        return None
    pair = _PAIR.match(text, place)
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


RULES = (
    RedactionRule(
        "credential_pair",
        _ACCOUNT_NAMES,
        r"(?iu:[^\s:]{2,12}) [\w.-]{2,32}(?:[:：]|[ ]?[/／][ ]?)(?=[^\s]{5})([!-.0-~]{5,64}+)",
        _pair_of_account,
        bounded=False,
    ),
)
