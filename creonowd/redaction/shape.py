"""What a value looks like: words, a stand-in, code, or something nobody would say.

Knows nothing of labels and vendors; every question is about one short string.
"""

import re

from creonowd.redaction.vocabulary import COMMON_PAIRS, TECHNICAL_TERMS

LONGEST_LOOK = 96

_ENOUGH_IF_SHORT, _ENOUGH_IF_LONG = 0.55, 0.6
_LONG = 20

_LOWER, _UPPER, _DIGIT = re.compile("[a-z]"), re.compile("[A-Z]"), re.compile("[0-9]")
_LETTER = re.compile("[A-Za-z]")
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_DIGITS_INSIDE = re.compile(r"[A-Za-z][0-9]+[A-Za-z]|[0-9][A-Za-z]+[0-9]")
_NAMES_A_SECRET = re.compile(r"passw|pwd|secret|token|key|credential|auth", re.IGNORECASE)
_MASK = re.compile(r"[xX*•●○■□.·…?#_=\-\s]*\Z")
_STAND_IN = re.compile(
    r"x{8,}|(?<![a-z0-9])x{3,}(?![a-z0-9])|\*{3}|•{2}|\.{3}|…|^[<\[{]|>$|\$[{(]|\{\{|^%\w+%$|^\$[a-z_]+$|(?<![a-z])your(?![a-z]{2})"
    r"|placeholder|change[-_]?me|replace[-_]?(?:me|this|with)|insert[-_]|[-_]here$|(?<![a-z])dummy(?![a-z])",
    re.IGNORECASE,
)
_NO_NAME = re.compile(r"[A-Z]_[A-Z]|[0-9]{6}|\A(?=[A-Za-z]*[0-9])[A-Za-z0-9]+\Z|\A[a-z]{24,}\Z")
_CODE = re.compile(
    r"([A-Za-z_$][\w$]*+)((?:(?:\.|::|->|\?\.)[A-Za-z_$][\w$]*+)*+)([(\[].*)?\Z", re.DOTALL
)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://|[\w.+-]+@[\w-]+(?:\.[\w-]+)+\Z|www\.", re.IGNORECASE)
_PLACE = re.compile(r"(?:~|\.{1,2})?[\\/]|[A-Za-z]:[\\/]|[\w.-]+/[\w./-]+\.\w{1,5}\Z")


def is_wordlike(letters: str) -> bool:
    """Tell words from random letters by how many neighbours are common in English or pinyin."""
    low = letters[:LONGEST_LOOK].lower()
    if len(low) < 4:
        return True
    known = sum(map(COMMON_PAIRS.__contains__, map(str.__add__, low, low[1:])))
    enough = _ENOUGH_IF_LONG if len(low) >= _LONG else _ENOUGH_IF_SHORT
    return known >= enough * (len(low) - 1)


def is_words(value: str) -> bool:
    """Tell whether a value is only words and small numbers, in kebab, snake, camel or dotted case."""
    look = value[:LONGEST_LOOK]
    if _DIGITS_INSIDE.search(look):
        return False
    pieces = _PIECE.findall(look)
    words = [piece for piece in pieces if not piece.isdigit()]
    letters = sum(map(len, words))
    digits = sum(map(len, pieces)) - letters
    shortest_word = 3.2 if len(look) == len("".join(pieces)) else 2.5
    if letters < shortest_word * len(words) or 2 * digits > letters + 4:
        return False
    return is_wordlike("".join(words))


def is_stand_in(value: str) -> bool:
    """Tell whether a value only marks the place of a secret: a mask, a variable, `your-key-here`."""
    return _MASK.match(value) is not None or _STAND_IN.search(value, 0, LONGEST_LOOK) is not None


def is_passphrase(value: str, fewest: int) -> bool:
    """Tell whether words are strung together by hyphens as people do for passwords."""
    return len(re.split("[-_]", value[:LONGEST_LOOK])) >= fewest and not re.search("[./:]", value)


def is_shouted(value: str) -> bool:
    """Tell whether words are written as no class or function is: `THIS_IS_SECRET`, `mysecret123456`."""
    return value.isupper() or _NO_NAME.search(value, 0, LONGEST_LOOK) is not None


def is_code(value: str) -> bool:
    """Tell whether a value is an expression that leads to a secret instead of being one."""
    expression = _CODE.match(value)
    if expression is None or not (expression[2] or expression[3]):
        return False
    names = re.findall(r"\w{3,}", expression[1] + expression[2])
    return any(map(is_words, names))


def is_reference(value: str) -> bool:
    """Tell whether a value is a URL, an e-mail address or a path."""
    return _ADDRESS.match(value) is not None or (
        _PLACE.match(value) is not None and is_words(value)
    )


def is_random(value: str, shortest: int) -> bool:
    """Tell whether a value looks made by a machine: long, mixed, and no words in it."""
    if len(value) < shortest or is_stand_in(value) or is_reference(value):
        return False
    if is_words(value) or is_code(value) or len(_LETTER.findall(value)) < len(value) / 6:
        return False
    return has_mixture(value) or (value.isalpha() and len(value) >= 2 * shortest)


def has_mixture(value: str) -> bool:
    """Tell whether letters stand among digits, or both cases among each other."""
    lower, upper, digit = _kinds(value)
    return (digit and (lower or upper)) or (lower and upper)


def is_secret(value: str, *, digits: bool = False) -> bool:
    """Tell whether a value that stands behind a secret's name may be the secret itself.

    `digits` admits plain numbers, as in passwords.
    """
    if len(value) < 6 or is_stand_in(value) or is_reference(value) or _is_term(value):
        return False
    if value.isdigit():
        return digits and len(value) <= 20
    return _is_unsayable(value) and not is_code(value)


def _is_term(value: str) -> bool:
    return re.sub(r"[-_]", "", value).lower() in TECHNICAL_TERMS


def _is_unsayable(value: str) -> bool:
    lower, upper, digit = _kinds(value)
    if digit and (lower or upper):
        sayable = re.search(r"[-_./:]", value) and is_words(value)
        return bool(re.search(r"[!@#$%^&*+]", value)) or not sayable or is_passphrase(value, 3)
    if digit or _NAMES_A_SECRET.search(value, 0, LONGEST_LOOK):
        return False
    if re.search(r"[!@#$%^&*+~](?=\w)", value) and len(value) >= 8:
        return not is_words(value) or (lower and upper)
    return len(value) >= (8 if lower and upper else 16) and not is_words(value)


def _kinds(value: str) -> tuple[bool, bool, bool]:
    return (
        _LOWER.search(value, 0, LONGEST_LOOK) is not None,
        _UPPER.search(value, 0, LONGEST_LOOK) is not None,
        _DIGIT.search(value, 0, LONGEST_LOOK) is not None,
    )
