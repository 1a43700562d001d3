"""What must stay: prose, and everything that only looks like a secret or a path."""

from pathlib import Path

import pytest

from creonowd.redaction import redact
from tests.redaction.samples import HARMLESS, wrong_redactions

NOVELS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


@pytest.mark.parametrize("heading", HARMLESS)
def test_it_stays_alone_and_among_other_lines(heading: str) -> None:
    lines = HARMLESS[heading]
    pages = [f"　　雨停了。\n\n{line}\nport: 5432\n“走吧。”她说。\n" for line in lines]

    wrong = wrong_redactions((text, text, "") for text in lines + pages)

    assert not wrong, "\n".join(wrong)


def test_what_is_redacted_already_stays() -> None:
    texts = (
        "***REDACTED***",
        "密码：***REDACTED***",
        "apiKey=***REDACTED***, next",
        "打开 ***REDACTED*** 即可",
        "postgres://app:***REDACTED***@db/novel",
        "******REDACTED******REDACTED***",
    )

    wrong = wrong_redactions((text, text, "") for text in texts)

    assert not wrong, "\n".join(wrong)


def test_whole_novels_stay() -> None:
    """Reads the two novels of `../shared/corpus`; without them, the prose of these tests."""
    novels = [path.read_text(encoding="utf-8") for path in sorted(NOVELS.glob("*.txt"))]

    for novel in novels or ["\n".join(HARMLESS["Prose"] * 50)]:
        assert redact(novel) == (novel, ())
