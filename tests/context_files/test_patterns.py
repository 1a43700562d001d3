"""Patterns are understood or refused at once, whatever they are."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context_files import patterns
from creonowd.errors import DaemonError, ErrorCode
from testing.fuzz import damaged_inputs

WHOLE = [
    rb"^(?:\bfoo|\w+\s?)(?P<name>[^a-z\d]{1,3})$",
    "[[:^alpha:]林]*?|\\p{Han}+\\Q.*\\E".encode(),
    rb"(?i-s:a\x{1F600}\012|\pL)\z",
]
PIECES = (
    b"(",
    b")",
    b"[",
    b"]",
    b"[^",
    b"&&",
    b"{2,}",
    b"{1000}",
    b"\\",
    rb"\Q",
    rb"\E",
    rb"\C",
    b"(?",
)


@pytest.mark.fuzz
@given(data=damaged_inputs(WHOLE, PIECES, most=12), case=st.booleans())
def test_a_spoilt_pattern_is_a_pattern_or_refused(*, data: bytes, case: bool) -> None:
    expect_a_pattern_or_a_refusal(data.decode("utf-8", "replace"), case_sensitive=case)


@pytest.mark.fuzz
@pytest.mark.requirement("CF-027", "CF-041")
@given(st.text(max_size=60))
def test_any_text_is_a_pattern_or_refused(text: str) -> None:
    expect_a_pattern_or_a_refusal(text, case_sensitive=True)


def expect_a_pattern_or_a_refusal(text: str, *, case_sensitive: bool) -> None:
    refusal: DaemonError | None = None
    try:
        found = patterns.compile_translated(patterns.translate(text, case_sensitive=case_sensitive))
        found.search("a林K\u212a\n".encode())
    except DaemonError as error:
        refusal = error

    assert refusal is None or refusal.code is ErrorCode.INVALID_ARGUMENT
    assert refusal is None or refusal.details["field"] == "pattern"


@pytest.mark.requirement("CF-027", "CF-041")
@pytest.mark.parametrize(
    ("pattern", "is_found"),
    [
        ("(a+)+$", False),
        ("^(a|a)*$", False),
        ("(.*)*x", False),
        ("(a*)*b", False),
        ("((a{1,9}){1,9}){1,9}", True),
    ],
)
def test_a_catastrophic_pattern_takes_linear_time(pattern: str, *, is_found: bool) -> None:
    """By construction: the automaton never goes back. With `re` these would not end."""
    compiled = patterns.compile_translated(patterns.translate(pattern, case_sensitive=False))

    found = compiled.search(b"a" * 100_000 + b"!")

    assert (found is not None) is is_found


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        ("foo(", "missing )"),
        ("[a", "missing ]"),
        ("*a", "no argument"),
        (r"(a)\1", "invalid escape"),
        ("(?=a)", "invalid perl operator"),
        ("(?<=a)b", "invalid"),
        ("a{1001}", "repetition"),
        (r"(\p{L}{200}){5}", "too large"),
        ("a\nb", "line break"),
        (r"a\nb", "line break"),
        (r"\C", r"\C"),
        ("a\ud83d", "half a character"),
    ],
)
def test_a_bad_pattern_says_what_is_wrong(pattern: str, says: str) -> None:
    with pytest.raises(DaemonError, match="INVALID_ARGUMENT") as caught:
        patterns.translate(pattern, case_sensitive=True)

    assert says in caught.value.message


def test_words_are_ascii_for_ripgrep_too() -> None:
    translated = patterns.translate(r"\bfoo\B", case_sensitive=True)

    assert patterns.for_ripgrep(translated) == r"(?-u:\b)foo(?-u:\B)"


@pytest.mark.parametrize(
    ("pattern", "line", "matches"),
    [
        (r"\bkey\b", "这是key吗", True),
        (r"\w", "汉", False),
        (r"\p{Han}{2}", "红楼", True),
        (r"^\s+一", "　　一", True),
        ("KEY", "key", True),
        ("(?-i:KEY)", "key", False),
        (r"(?i)[^\W_]+$", "sk", True),
        ("(?P<名>a)b", "ab", True),
        (r"\Qa.b\E", "axb", False),
        ("[[:^alpha:]]", "abc", False),
        (r"[\d\-x]", "-", True),
        (r"\pL", "9", False),
    ],
)
def test_a_pattern_means_what_it_says(pattern: str, line: str, *, matches: bool) -> None:
    compiled = patterns.compile_translated(patterns.translate(pattern, case_sensitive=False))

    assert (compiled.search(line.encode()) is not None) is matches
