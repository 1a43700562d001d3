"""Passwords as Chinese notes have them: a short label, letters of two scripts, counted signs, agreed words.

`passwords` reads 密码 as it reads any label; these are forms that only Chinese, and in part Korean and
Russian, has.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.labels import trim_bare
from creonowd.redaction.passwords import COUNTS, HAN_BLANK
from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule
from creonowd.redaction.shape import (
    has_digit_and_letter,
    has_sign,
    is_latin,
    is_plain_value,
    is_stand_in,
)

_AGREED = ("设的", "設的", "约定的", "約定的", "定的", "说好的", "對的", "对的", "用的", "留的")


def _mixed_letters(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a value of Chinese or Korean letters and others, as no sentence has them: `文库2024pg`."""
    value = re.split(r"[,;](?=[^\x00-\x7f])", match["value"])[0].rstrip(",;.")
    if match["verb"] and not re.search("[!-~]\\Z", value):
        return NOTHING
    odd = re.search(r"[0-9]", value) and re.search("[A-Za-z_@#$%&*!+-]", value)
    if not odd and match["setting"] is None:
        return NOTHING
    is_count = value[0].isdigit() and COUNTS.search(value) is not None
    if is_latin(value) or is_count or not re.search("[0-9A-Za-z@#$%&*!_+-]", value):
        return NOTHING
    is_other = HAN_BLANK.match(value) or is_stand_in(value)
    first = match.start("value")
    return NOTHING if is_other else ((first, first + len(value)),)


def _short_label(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of a mere 密:, where no other Han letter stands before it."""
    before = match.string[max(0, match.start() - 1) : match.start()]
    is_label = not before or before in " \t\n，,；;、/|　"
    value = trim_bare(match[1], in_query=False)
    is_taken = (
        is_label
        and is_plain_value(value)
        and (value.isdigit() or has_digit_and_letter(value) or has_sign(value))
    )
    return ((match.start(1), match.start(1) + len(value)),) if is_taken else NOTHING


def _kept_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take Han words of which it is said that nobody else may hear them: 密码是…，别告诉外人."""
    return NOTHING if HAN_BLANK.search(match[1]) or "的" in match[1] else (match.span(1),)


def _counted_signs(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take a password of which it is said what it repeats: 六个八, 八个8加haitang."""
    return (match.span(1),)


def _agreed_words(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take quoted words of which it is said that somebody chose them: 我们设的口令是“…”."""
    is_agreed = match.string.endswith(_AGREED, max(0, match.start() - 8), match.start())
    return (match.span(1),) if is_agreed else NOTHING


RULES = (
    RedactionRule(
        "labelled_password",
        (
            "password",
            "passwd",
            "passphrase",
            "_pass",
            "pwd",
            "密码",
            "密碼",
            "口令",
            "密钥",
            "密鑰",
            "パスワード",
            "비밀번호",
            "비번",
            "암호",
            "пароль",
        ),
        r"(?:(?P<setting>(?iu:password|passwd|passphrase|pass|pwd|비밀번호|密码|密碼|口令)=)|(?iu:password|passwd|passphrase|_pass|pwd|密[码碼钥鑰]|口令|パスワード|비밀번호|비번|암호|пароль)"
        r"(?:[ \t]?[:：=→][ \t]{0,2}|(?P<verb>(?:是|为|為|改成|改为|换成)[ ]?)))[\"'“「]?(?=[!-~]{0,24}[\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3])"
        r"(?P<value>[!-~\u3041-\u30ff\u4e00-\u9fff\uac00-\ud7a3]{4,32}?)(?=[\"'”」]?(?:[\s，。；、（(]|\Z))",
        _mixed_letters,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密码", "密碼", "口令"),
        r"(?:密[码碼]|口令)(?:就?是|为|[:：])?[ ]?((?:[一二两三四五六七八1-8]个[0-9零一二三四五六七八九a-zA-Z](?:加|和|再加)?){1,4}(?:[!-~]{1,24})?)(?=[\s，。；！（(]|\Z)",
        _counted_signs,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密:", "密：", " 码:", " 码："),
        r"(?:密|[ ]码)[:：][ ]?([!-~]{4,64}+)",
        _short_label,
        bounded=False,
    ),
    RedactionRule(
        "labelled_password",
        ("密码是", "密碼是", "口令是", "密码就是", "密码：", "密码:"),
        r"(?:密[码碼]|口令)(?:就?是|[:：])([\u4e00-\u9fff]{3,10})[，,。！! ]{1,2}(?:请?别(?:告诉|外传|往外|跟|给|传|发)|不要(?:告诉|外传|传)|请勿(?:外传|转发)|保密|记牢|记好|千万别|全拼|汉字|中文)",
        _kept_words,
        bounded=False,
        names=True,
    ),
    RedactionRule(
        "labelled_password",
        ("密码是", "密碼是", "口令是", "暗语是", "暗語是", "暗号是"),
        r"(?:密[码碼]|口令|暗[语語号])(?:就)?是[ ]?[“「『\"]([^“”「」『』\"\n]{4,24})[”」』\"]",
        _agreed_words,
        bounded=False,
    ),
)
