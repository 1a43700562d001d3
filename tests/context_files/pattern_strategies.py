"""Patterns of the language that both engines share, each with its meaning in Python's `re`."""

from typing import NamedTuple

from hypothesis import strategies as st

SPACE = r"\t\v\f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
LETTERS = "abkKsS01_-. \u3000贾宝玉é😀"

WIDTHLESS = {r"\b", "^"}


class Pattern(NamedTuple):
    """A pattern as a client writes it, and as Python understands it."""

    ours: str
    python: str


ATOMS = st.sampled_from(
    [
        *(Pattern(char, char) for char in "abkKsS01贾宝é😀"),
        Pattern(r"\.", r"\."),
        Pattern(".", r"[^\r\n]"),
        Pattern(r"\d", "[0-9]"),
        Pattern(r"\D", r"[^0-9\r\n]"),
        Pattern(r"\w", "[0-9A-Za-z_]"),
        Pattern(r"\W", r"[^0-9A-Za-z_\r\n]"),
        Pattern(r"\s", f"[{SPACE}]"),
        Pattern(r"\S", rf"[^{SPACE}\r\n]"),
        Pattern(r"\b", r"(?a:\b)"),
        Pattern("^", "^"),
        Pattern("[abs贾]", "[abs贾]"),
        Pattern("[^ab贾]", r"[^ab贾\r\n]"),
        Pattern("[a-k]", "[a-k]"),
        Pattern(r"[\d贾]", "[0-9贾]"),
        Pattern(r"[^\W_]", "[0-9A-Za-z]"),
        Pattern("[[:alpha:]0]", "[A-Za-z0]"),
        Pattern("[]a]", r"[\]a]"),
        Pattern("[a&&b]", "[a&b]"),
        Pattern(r"\x{8d3e}", "贾"),
        Pattern(r"\141", "a"),
        Pattern(r"\Qa.\E", r"a\."),
        Pattern(r"\p{Han}", "[贾宝玉]"),
        Pattern("a{,2}", r"a\{,2\}"),
    ]
)
ENDS = st.sampled_from([Pattern("", ""), Pattern("$", r"\Z"), Pattern(r"\z", r"\Z")])


def _repeated(pattern: Pattern, operator: str) -> Pattern:
    if pattern.ours in WIDTHLESS:
        return pattern
    return Pattern(f"(?:{pattern.ours}){operator}", f"(?:{pattern.python}){operator}")


def _joined(patterns: list[Pattern]) -> Pattern:
    return Pattern("".join(p.ours for p in patterns), "".join(p.python for p in patterns))


def _either(patterns: list[Pattern]) -> Pattern:
    ours, python = ("|".join(sides) for sides in zip(*patterns, strict=True))
    return Pattern(f"({ours})", f"({python})")


REPEATED = st.builds(_repeated, ATOMS, st.sampled_from(["*", "+", "?", "{1,3}", "{2}", "*?"]))


def _ending(patterns: list[Pattern], end: Pattern) -> Pattern:
    return _joined([*patterns, end])


def _file(lines: list[str], ends: list[str], final: str) -> str:
    return "".join(map(str.__add__, lines, ends)).removesuffix(final)


PIECES = st.builds(_ending, st.lists(st.one_of(ATOMS, REPEATED), min_size=1, max_size=4), ENDS)
PATTERNS = st.one_of(PIECES, st.lists(PIECES, min_size=1, max_size=3).map(_either))
FILES = st.builds(
    _file,
    st.lists(st.text(alphabet=LETTERS + "\r", max_size=8), max_size=8),
    st.lists(st.sampled_from(["\n", "\r\n"]), min_size=8, max_size=8),
    st.sampled_from(["", "\n"]),
)
