"""Which lines hold a secret, wherever the blocks happen to end."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context_files.new_file import file_stats
from creonowd.context_files.search import SecretLines, SecretLinesCache
from creonowd.redaction import Redactor
from tests.context_files.files import file_of

KEY = "ghp_Zq8Lw2Xv9Rt4Yb7Nc1Md6Kf3Hs5Jg0Pd2Xa"
REDACTOR = Redactor()


def starts(data: bytes) -> list[int]:
    offsets = [0]
    for line in data.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    return offsets[:-1]


@given(
    st.lists(st.sampled_from([f"a {KEY} b", "plain", "密码在别处", "x" * 300, ""]), max_size=40),
    st.sampled_from([16, 64, 1024]),
)
def test_the_secret_lines_are_found_whatever_the_blocks(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], block: int
) -> None:
    data = "".join(f"{line}\n" for line in lines).encode()

    with file_of(tmp_path_factory.mktemp("veiled"), data) as file:
        veil = SecretLines(REDACTOR, block)
        hidden = [veil.hides(file, start) for start in starts(data)]

    assert hidden == [KEY in line for line in lines]


def test_a_secret_over_several_lines_hides_them_all(tmp_path: Path) -> None:
    body = "\n".join("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" for _ in range(5))
    data = (
        f"before\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\nafter\n".encode()
    )

    with file_of(tmp_path, data) as file:
        veil = SecretLines(REDACTOR)
        hidden = [veil.hides(file, start) for start in starts(data)]

    assert hidden == [False, *[True] * 7, False]


def test_a_file_with_other_bytes_or_for_other_eyes_is_looked_at_anew() -> None:
    known = SecretLinesCache()
    first = known.of(file_stats([b"plain\n"]), REDACTOR)

    assert known.of(file_stats([b"plain\n"]), REDACTOR) is first
    assert known.of(file_stats([b"other\n"]), REDACTOR) is not first
    assert known.of(file_stats([b"plain\n"]), REDACTOR.sensitive()) is not first
    assert known.of(None, REDACTOR) is not known.of(None, REDACTOR)


def test_only_the_last_files_are_remembered() -> None:
    known = SecretLinesCache(most=2)
    first = known.of(file_stats([b"0"]), REDACTOR)
    for data in (b"1", b"2"):
        known.of(file_stats([data]), REDACTOR)

    assert known.of(file_stats([b"0"]), REDACTOR) is not first
