"""The character classes of patterns, written out as ranges so that every engine reads the same.

Knows code points; knows no pattern. Line ends belong to no class.
"""

from collections.abc import Sequence

Ranges = Sequence[tuple[int, int]]

LAST = 0x10FFFF
NOTHING = r"[^\x{0}-\x{10FFFF}]"

_DIGIT: Ranges = ((0x30, 0x39),)
_WORD: Ranges = (*_DIGIT, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_SPACES = (0x09, 0x0B, 0x0C, 0x20, 0x85, 0xA0, 0x1680, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000)
_SPACE: Ranges = (*((code, code) for code in _SPACES), (0x2000, 0x200A))
_LINE_ENDS: Ranges = ((0x0A, 0x0A), (0x0D, 0x0D))
# These two fold to ASCII letters: were they in `\W`, ignoring case would let it match `s` and `k`.
_LIKE_ASCII: Ranges = ((0x17F, 0x17F), (0x212A, 0x212A))

_POSIX: dict[str, Ranges] = {
    "alnum": ((0x30, 0x39), (0x41, 0x5A), (0x61, 0x7A)),
    "alpha": ((0x41, 0x5A), (0x61, 0x7A)),
    "ascii": ((0x00, 0x7F),),
    "blank": ((0x09, 0x09), (0x20, 0x20)),
    "cntrl": ((0x00, 0x1F), (0x7F, 0x7F)),
    "digit": _DIGIT,
    "graph": ((0x21, 0x7E),),
    "lower": ((0x61, 0x7A),),
    "print": ((0x20, 0x7E),),
    "punct": ((0x21, 0x2F), (0x3A, 0x40), (0x5B, 0x60), (0x7B, 0x7E)),
    "space": ((0x09, 0x0D), (0x20, 0x20)),
    "upper": ((0x41, 0x5A),),
    "word": _WORD,
    "xdigit": ((0x30, 0x39), (0x41, 0x46), (0x61, 0x66)),
}


def spelled(ranges: Ranges) -> str:
    """Write ranges as the inside of a class, escaping all but plain letters and digits."""
    return "".join(
        _char(low) if low == high else f"{_char(low)}-{_char(high)}" for low, high in ranges
    )


def posix(name: str) -> str:
    """Write the class `[:name:]`, or its complement for `^name`, as the inside of a class."""
    ranges = _POSIX[name.removeprefix("^")]
    return spelled(complement(ranges if name.startswith("^") else complement(ranges, ends=False)))


def complement(ranges: Ranges, *, ends: bool = True) -> Ranges:
    """List what lies in none of the ranges, leaving out line ends unless told not to."""
    gaps: list[tuple[int, int]] = []
    free = 0
    for low, high in sorted([*ranges, *(_LINE_ENDS if ends else ())]):
        if low > free:
            gaps.append((free, low - 1))
        free = max(free, high + 1)
    return [*gaps, (free, LAST)] if free <= LAST else gaps


def _char(code: int) -> str:
    plain = chr(code).isalnum() or chr(code) == "_"
    return chr(code) if plain and not 0xD800 <= code <= 0xDFFF else f"\\x{{{code:x}}}"


POSITIVE = {"d": spelled(_DIGIT), "w": spelled(_WORD), "s": spelled(_SPACE)}
NEGATED = {
    "D": spelled(complement(_DIGIT)),
    "W": spelled(complement([*_WORD, *_LIKE_ASCII])),
    "S": spelled(complement(_SPACE)),
}
