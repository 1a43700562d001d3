"""A search tells nothing of a secret: not where it is, not what it begins with, not that it is there."""

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from creonowd.context_files.files import GrepRequest
from creonowd.context_files.patterns import compiled, translate
from creonowd.context_files.search import VisibleMatches, matches_beside
from creonowd.redaction import PLACEHOLDER, Redactor
from tests.context_files.test_grep import ENGINES, numbered, searched

REDACTOR = Redactor()
HEX = st.text("0123456789abcdef", min_size=40, max_size=40)
LINES = st.sampled_from(
    [
        "token=ghp_{}",
        "GET /v1?token=ghp_{} 200 OK",
        "ghp_{}",
        "用 ghp_{} 登录，两次",
        "no secret here",
        "error: token=ghp_{} refused",
        "",
    ]
)
PATTERNS = st.sampled_from(
    [
        "ghp_{}",
        "token=ghp_[{}]",
        "token=ghp_[^{}]",
        "ghp_{}|REDACTED",
        r"ghp_\w*{}$",
        r"=\b.*{}",
        "{}",
        r"token=(?:ghp_{}|\*\*\*REDACTED\*\*\*)",
        "200|ghp_{}",
        "^[^{}]*$",
        "error.*",
        "登录",
        r"\bghp_{}\w*\b",
        ".",
        "",
    ]
)


def told(matches: VisibleMatches) -> tuple[list[tuple[int, str]], int, bool]:
    return numbered(matches.matches), matches.total, matches.cursor is None


@pytest.mark.requirement("CF-045")
@pytest.mark.parametrize("program", ENGINES)
@settings(max_examples=150)
@given(
    lines=st.lists(LINES, min_size=1, max_size=6),
    secrets=st.tuples(HEX, HEX),
    guess=st.tuples(PATTERNS, st.integers(0, 38), st.integers(1, 4)),
)
def test_two_secrets_that_look_the_same_are_searched_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    program: Path | None,
    lines: list[str],
    secrets: tuple[str, str],
    guess: tuple[str, int, int],
) -> None:
    """Whoever guesses a piece of the first one right sees what whoever guesses wrong sees."""
    pattern, start, length = guess
    sought = pattern.replace("{}", secrets[0][start : start + length])
    texts = ["\n".join(lines).replace("{}", secret) + "\n" for secret in secrets]
    assume(sought and REDACTOR.redact(texts[0]).text == REDACTOR.redact(texts[1]).text)
    assume(not any(secret in REDACTOR.redact(texts[0]).text for secret in secrets))
    place = tmp_path_factory.mktemp("searched")

    right, wrong = (searched(place, text.encode(), GrepRequest(sought), program) for text in texts)

    assert told(right) == told(wrong)


@pytest.mark.parametrize("program", ENGINES)
def test_a_line_is_found_by_what_stands_beside_its_secret(
    tmp_path: Path, program: Path | None
) -> None:
    data = f"open /home/li/a.md: refused\ntoken=ghp_{'a1' * 20} refused\nfine\n".encode()

    found = searched(tmp_path, data, GrepRequest("REFUSED|open.*"), program)

    assert found.total == 2
    assert numbered(found.matches) == [
        (1, f"open {PLACEHOLDER}: refused"),
        (2, f"token={PLACEHOLDER} refused"),
    ]


@pytest.mark.parametrize("program", ENGINES)
def test_what_is_found_in_secrets_alone_is_not_counted(
    tmp_path: Path, program: Path | None
) -> None:
    data = "".join(f"token=ghp_{n:02}{'b7' * 19}\n" for n in range(60)).encode()

    found = searched(tmp_path, data, GrepRequest("ghp_"), program)

    assert (found.matches, found.total, found.cursor) == ([], 0, None)
    assert searched(tmp_path, data, GrepRequest("ghp_"), program, raw=True).total == 60


def test_a_long_line_is_not_clipped_around_a_guess(tmp_path: Path) -> None:
    """Where the line is cut would tell where in it the guess was right."""
    line = f"{'word ' * 400}token=ghp_{'c3' * 20} {'tail ' * 400}\n".encode()

    right = searched(tmp_path, line, GrepRequest("ghp_c3|tail"))
    wrong = searched(tmp_path, line, GrepRequest("ghp_d4|tail"))

    assert told(right) == told(wrong)


@pytest.mark.parametrize(
    ("pattern", "shown", "beside"),
    [
        ("open", f"open {PLACEHOLDER}", True),
        ("open .", f"open {PLACEHOLDER}", False),
        (r"open\b", f"open{PLACEHOLDER}", False),
        ("end$", f"{PLACEHOLDER} end", True),
        ("^open", f"open {PLACEHOLDER} end", True),
        ("open.*end", f"open {PLACEHOLDER} end", False),
        ("open.*", f"open {PLACEHOLDER} end", True),
        ("REDACTED", f"open {PLACEHOLDER} end", False),
        ("a|$", PLACEHOLDER, False),
        ("x*", f"{PLACEHOLDER} end", True),
    ],
)
def test_only_a_match_away_from_secrets_counts(pattern: str, shown: str, *, beside: bool) -> None:
    regex = compiled(translate(pattern, case_sensitive=True))

    assert matches_beside(regex, shown.encode()) is beside
