"""Secrets that never were: a template such as `ghp_{A36}` filled with letters of a fixed chance."""

import random
import re
import string

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "B": string.ascii_letters + string.digits + "+/",
    "C": string.ascii_letters,
    "D": "123456789",
    "H": "0123456789abcdef",
    "L": string.ascii_lowercase,
    "U": string.ascii_uppercase + "234567",
    "W": string.ascii_letters + string.digits + "_-",
}
_BLANK = re.compile(r"\{([A-Z])(\d+)\}")


def made_up(template: str, seed: int = 7) -> str:
    """Fill every `{A36}` with so many characters of the alphabet; same template, same text."""
    chance = random.Random(f"{template}{seed}")
    return _BLANK.sub(lambda blank: _letters(chance, blank[1], int(blank[2])), template)


def _letters(chance: random.Random, alphabet: str, length: int) -> str:
    """Begin and end with a plain letter, as a boundary of `-` or `_` would blur the edges."""
    middle = "".join(chance.choice(ALPHABETS[alphabet]) for _ in range(max(0, length - 2)))
    edges = [char for char in ALPHABETS[alphabet] if char.isalnum()]
    return f"{chance.choice(edges)}{middle}{chance.choice(edges)}"[:length]
