"""Positions in a text: UTF-16 units, as JavaScript counts, and code points, as we do.

Pure functions over strings; a position inside a surrogate pair is nobody's position.
"""

from collections.abc import Iterable

from creonowd.errors import DaemonError, ErrorCode


def utf16_length(text: str) -> int:
    """Count the UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def to_utf16(text: str, positions: Iterable[int]) -> dict[int, int]:
    """Turn code point positions into ones of UTF-16 units; the text is gone through once."""
    units: dict[int, int] = {}
    before = count = 0
    for position in sorted(set(positions)):
        count += utf16_length(text[before:position])
        units[position] = count
        before = position
    return units


def from_utf16(text: str, position: int) -> int:
    """Turn a position of UTF-16 units into one of code points.

    INVALID_ARGUMENT if it lies outside the text or inside a surrogate pair.
    """
    check_position(position, utf16_length(text))
    found = code_points(text, position)
    if found is None:
        raise inside_a_pair(position)
    return found


def code_points(text: str, units: int) -> int | None:
    """Count the code points in the first UTF-16 units of a text; None if they end inside a pair."""
    if text.isascii():
        return units
    encoded = text.encode("utf-16-le", "surrogatepass")
    if _is_high(encoded, units - 1) and _is_low(encoded, units):
        return None
    return len(encoded[: 2 * units].decode("utf-16-le", "surrogatepass"))


def check_position(position: int, length: int) -> None:
    """Refuse a position outside a text of this length with INVALID_ARGUMENT."""
    if not 0 <= position <= length:
        raise DaemonError(
            ErrorCode.INVALID_ARGUMENT,
            f"Position {position} lies outside the text, which ends at {length}.",
            position=position,
            length=length,
        )


def inside_a_pair(position: int) -> DaemonError:
    """Say that a position would tear a character in two."""
    return DaemonError(
        ErrorCode.INVALID_ARGUMENT,
        f"Position {position} lies inside a surrogate pair.",
        position=position,
    )


def _is_high(encoded: bytes, unit: int) -> bool:
    return 0 <= 2 * unit < len(encoded) and 0xD8 <= encoded[2 * unit + 1] <= 0xDB


def _is_low(encoded: bytes, unit: int) -> bool:
    return 0 <= 2 * unit < len(encoded) and 0xDC <= encoded[2 * unit + 1] <= 0xDF
