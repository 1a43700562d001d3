"""Labels that are spaced out, hyphenated or broken by markup: `P A S S W O R D`, `pass-⏎word`, 【密　码】.

A passage with such a label is repaired and read by the rules for whole labels.
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule, Scanner, make_scanner, scan

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
_SIGNS = (
    "密码", "密碼", "口令", "密钥", "密鑰", "秘钥", "令牌", "私钥", "私鑰", "提取码", "验证码", "驗證碼", "授权码", "パスワード", "暗証番号", "合言葉", "비밀번호", "비번", "암호",
)  # fmt: skip
_WORDS = (*(word.replace("|", "") for word in _SYLLABLES), *_SPACED_WORDS)
_GAPS = (" ", "  ", ".", ". ", "-", " - ", "_", "*", "·", " · ", "•", "\u3000")
_BREAKS = ("-\n", "-\r", " ", "-", "</", "<", "**", "*", "__", "_", ".", "·")
_GAP = r"(?:[ \u3000]{1,6}|[ ]?[.·_•*-][ ]?|\*\*|__|</?[a-z]{1,6}>|-\r?\n[ \t>]{0,8}|)"
_LABEL = re.compile(
    "|".join(
        rf"{'(?<![a-z])' if word.isascii() else ''}{_GAP.join(map(re.escape, word))}"
        for word in (*_WORDS, *_SIGNS)
    ),
    re.IGNORECASE,
)
_REST_OF_WORD = re.compile(r"\S{0,160}")
_NO_LETTER = re.compile(r"</?[a-z]{1,6}>|[^\w]|_", re.IGNORECASE)


def _anchors() -> Iterator[str]:
    for word in _WORDS:
        yield from (gap.join(word[:4]) for gap in _GAPS)
        yield from (f"{word[0]}{mark}{word[1:4]}" for mark in ("**", "*", "</", "__"))
    for word in _SYLLABLES:
        first, second = word.split("|")[:2]
        yield from (
            first + sign + (second[:2] if sign.isprintable() and sign[0] != "<" else "")
            for sign in _BREAKS
        )
    for sign in _SIGNS:
        yield from (sign[:2] + gap + sign[2] for gap in _GAPS if len(sign) > 2)
        yield from (
            sign[0] + gap + sign[1]
            for gap in (
                *_GAPS,
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
    words = "|".join(_GAP.join(map(re.escape, word)) for word in (*_WORDS, *_SIGNS))
    return RedactionRule(
        "labelled_password",
        tuple(dict.fromkeys(map(str.lower, _anchors()))),
        rf"(?i:{words})[^\n]{{0,240}}(?:\r?\n[^\n]{{0,120}}){{0,3}}",
        _LabelRepairer(rules),
        bounded=False,
    )
