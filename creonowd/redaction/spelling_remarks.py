"""Passwords of which it is said how they are spelt: `… is three small otters, all lower case`, 全小写, 全拼.

Nobody says so of anything that is not to be typed in, so that the value may be plain words.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule
from creonowd.redaction.secret_names import FOREIGN_NAMES, HAN_LABELS
from creonowd.redaction.shape import BLANK_VALUES, COMMON_VALUES, FUNCTION_WORDS, is_stand_in

LONGEST_SENTENCE = 140

REMARKS = (
    "all lower case", "all lowercase", "all in lower case", "capitals", "caps and all", "mind the capitals", "lower case", "lowercase", "all small letters", "small letters", "no spaces", "without spaces",
    "without the spaces", "with the spaces", "with spaces", "all one word", "one word", "no capitals", "no caps", "all caps", "capital ", "dash included",
    "including the dash", "with the dash", "alles klein", "kleingeschrieben", "klein geschrieben", "in kleinbuchstaben", "zusammengeschrieben",
    "in einem wort", "ohne leerzeichen", "großgeschrieben", "mit großem", "tout en minuscules", "en minuscules", "sans espace", "tout attaché",
    "en un seul mot", "avec une majuscule", "todo en minúsculas", "en minúsculas", "sin espacios", "todo junto", "con mayúscula",
    "tutto minuscolo", "tutto in minuscolo", "senza spazi", "tutto attaccato", "con la maiuscola", "tudo minúsculo", "em minúsculas", "sem espaços",
    "tudo junto", "kleine letters", "zonder spaties", "aan elkaar", "małymi literami", "bez spacji", "строчными", "маленькими буквами",
    "без пробелов", "слитно", "全小写", "全部小写", "都是小写", "小写字母", "全拼", "拼音", "不带空格", "没有空格", "无空格", "不加空格", "连写", "首字母大写", "全小寫", "都是小寫",
    "すべて小文字", "全部小文字", "小文字", "スペースなし", "ローマ字", "전부 소문자", "모두 소문자", "소문자", "띄어쓰기 없이", "영문으로",
)  # fmt: skip
_LABEL = re.compile(
    rf"(?<![A-Za-z])(?:passwords?|passphrase|passcode|l['’]ordi|ordinateur|laptop|rechner|computer|tablette|hotspot|(?:opens|unlocks)(?= with)|pass ?word|pwd?|pin|wi-?fi|wlan|{'|'.join(map(re.escape, FOREIGN_NAMES))})(?![a-z])|{'|'.join(HAN_LABELS)}",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"[\"“„«「『‘]([^\"“”„«»「」『』‘’\n]{3,60})[\"”“»」』’]")
_TOLD = re.compile(
    r"(?:[:：=→是为為叫はがを는은을]|(?<![^\s\"'])(?:is|was|to|with|ist|lautet|est|c['’]est|es|è|é|to jest|это)(?=\s))[ \t\u3000]{0,2}"
    r"(?P<value>[A-Za-z0-9\u00c0-\u024f\u0400-\u04ff][!-+\--:<-~\u00c0-\u024f\u0400-\u04ff]{2,39}(?: [A-Za-z0-9\u00c0-\u024f\u0400-\u04ff'’-]{1,20}){0,6})[ ]?[,，、(（.。;；–—-]{0,2}[ ]?\Z"
)
_BEHIND = re.compile(
    r"[^\x00-\x7f，。\n]{0,8}[,，:：是 ]{1,3}(?P<value>[a-z0-9][a-z0-9_.-]{5,39})(?![A-Za-z0-9])"
)


def _spelt(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look for a label in the sentence, and for the value between it and the remark, or around them."""
    text, start = match.string, match.start()
    first = max(0, start - LONGEST_SENTENCE)
    first = max(first, text.rfind("\n", first, start) + 1)
    labels = list(_LABEL.finditer(text, first, start))
    if not labels:
        return NOTHING
    label = labels[-1]
    quoted = list(_QUOTED.finditer(text, label.end(), start))
    told = _TOLD.search(text, label.end(), start)
    behind = _BEHIND.match(text, match.end())
    if quoted:
        found = quoted[-1].span(1)
    elif told is not None:
        found = told.span("value")
    elif behind is not None and not text[label.start() : label.end()].isascii():
        found = behind.span("value")
    else:
        before = list(_QUOTED.finditer(text, first, label.start()))
        if not before or start - label.end() > len(label[0]):
            return NOTHING
        found = before[-1].span(1)
    return (found,) if _is_typed_in(text[slice(*found)]) else NOTHING


def _is_typed_in(value: str) -> bool:
    words = value.lower().split()
    other = FUNCTION_WORDS | COMMON_VALUES | BLANK_VALUES
    return other.isdisjoint(words) and not is_stand_in(value)


RULES = (
    RedactionRule(
        "labelled_password",
        REMARKS,
        f"(?iu:{'|'.join(map(re.escape, REMARKS))})",
        _spelt,
        bounded=False,
    ),
)
