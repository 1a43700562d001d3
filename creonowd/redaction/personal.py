"""The wider rules of sensitive mode: what names or reaches a person, and any random string.

Knows addresses, numbers and entropy. Not used on prose by default, where it would do harm.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import NOTHING, Rule, Span, whole
from creonowd.redaction.shape import is_random

_ID_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def _identity_card(match: "re.Match[str]") -> Sequence[Span]:
    """Check the last digit of a mainland identity card."""
    digits = match[0]
    total = sum(weight * int(digit) for weight, digit in zip(_ID_WEIGHTS, digits[:17], strict=True))
    return (match.span(),) if "10X98765432"[total % 11] == digits[17].upper() else NOTHING


def _bank_card(match: "re.Match[str]") -> Sequence[Span]:
    digits = [int(char) for char in match[0] if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return (match.span(),) if (sum(digits[::-2]) + sum(doubled)) % 10 == 0 else NOTHING


def _random_string(match: "re.Match[str]") -> Sequence[Span]:
    return (match.span(),) if is_random(match[0], 24) else NOTHING


RULES = (
    Rule(
        "email_address",
        (),
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}+@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{2,24}){1,4}",
        whole,
    ),
    Rule(
        "identity_card_cn",
        (),
        r"(?<![0-9A-Za-z])[1-9][0-9]{16}[0-9Xx](?![0-9A-Za-z])",
        _identity_card,
    ),
    Rule(
        "bank_card_number",
        (),
        r"(?<![0-9A-Za-z-])[3-6][0-9]{3}(?:[ -]?[0-9]{4}){2,3}[ -]?[0-9]{1,4}(?![0-9A-Za-z-])",
        _bank_card,
    ),
    Rule(
        "phone_number_cn",
        (),
        r"(?<![0-9A-Za-z])(?:\+?86[ -]?)?1[3-9][0-9][ -]?[0-9]{4}[ -]?[0-9]{4}(?![0-9A-Za-z])",
        whole,
    ),
    Rule(
        "ipv4_address",
        (),
        r"(?<![0-9A-Za-z.])(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]{1,2})(?![0-9A-Za-z]|\.[0-9])",
        whole,
    ),
    Rule("random_string", (), r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,}+={0,2}", _random_string),
)
