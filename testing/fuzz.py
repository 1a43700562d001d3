"""Inputs that were valid once: cut off, doubled, filled with pieces of something else.

Random bytes seldom get past a reader's first check; a damaged input gets to its last.
Tests that use it are marked `fuzz`, and `scripts/fuzz` runs them for longer.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st

NASTY = (
    *(b"\0", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\\ud800", b"\\u0000", b"\xe2\x80\xa8"),
    *(b"\r", b"\n", b"\r\n", b"\t", b" ", b'"', b"\\", b"'", b":", b",", b"-"),
    *(b"{", b"}", b"[", b"]", b"[" * 2000, b'{"a":' * 2000, b"[]", b"{}", b'""'),
    *(b"null", b"true", b"0", b"-1", b"1.5", b"1e999", b"-0", b"9" * 30, b"9" * 5000, b"NaN"),
    *(b"../", b"/", b"C:\\", b"%s", b"&a *a", b"\xf0\x9f\x98\x80", "林".encode()),
)


class Damage(NamedTuple):
    """One thing done to an input, somewhere in it."""

    what: str
    place: int
    size: int
    piece: bytes


def damaged_inputs(
    whole: Sequence[bytes], pieces: Sequence[bytes] = (), most: int = 6
) -> st.SearchStrategy[bytes]:
    """Draw one of these inputs with up to so many damages; `pieces` are words of its language."""
    piece = st.one_of(
        st.sampled_from([*pieces, *NASTY]),
        st.sampled_from(list(whole)).flatmap(_slices),
        st.binary(max_size=8),
    )
    what = st.sampled_from(["leave out", "replace", "double", "put in", "put in", "cut off"])
    damage = st.builds(Damage, what, st.integers(0, 1 << 16), st.integers(0, 60), piece)
    return st.builds(_damage, st.sampled_from(list(whole)), st.lists(damage, max_size=most))


def scaled_examples(times: float) -> settings:
    """Ask for so many times the examples of the profile, so that a longer one stays longer."""
    usual = settings.get_current_profile_name()
    return settings(max_examples=round(times * settings.get_profile(usual).max_examples))


def _slices(data: bytes) -> st.SearchStrategy[bytes]:
    ends = st.tuples(st.integers(0, len(data)), st.integers(0, 80))
    return ends.map(lambda at: data[at[0] : at[0] + at[1]])


def _damage(data: bytes, damages: list[Damage]) -> bytes:
    for damage in damages:
        start = damage.place % (len(data) + 1)
        end = start + damage.size
        middle = {
            "leave out": b"",
            "replace": damage.piece,
            "double": data[start:end] * 2,
            "put in": damage.piece + data[start:end],
            "cut off": b"",
        }[damage.what]
        data = data[:start] + middle + (b"" if damage.what == "cut off" else data[end:])
    return data
