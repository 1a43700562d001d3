"""What must stay: prose, and everything that only looks like a secret or a path."""

from pathlib import Path

import pytest

from creonowd.redaction import redact

LEFT_ALONE = Path(__file__).with_name("left_alone.txt").read_text(encoding="utf-8").splitlines()
TEXTS = [text for text in LEFT_ALONE if text and not text.startswith("## ")]
NOVELS = Path(__file__).resolve().parents[3] / "shared" / "corpus"


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_left_alone(text: str) -> None:
    assert redact(text) == (text, ())


@pytest.mark.parametrize("text", TEXTS)
def test_it_is_left_alone_among_other_lines(text: str) -> None:
    page = f"　　雨停了。\n\n{text}\nport: 5432\n“走吧。”她说。\n"

    assert redact(page).text == page


@pytest.mark.parametrize(
    "text",
    [
        "***REDACTED***",
        "密码：***REDACTED***",
        "apiKey=***REDACTED***, next",
        "打开 ***REDACTED*** 即可",
        "postgres://app:***REDACTED***@db/novel",
        "******REDACTED******REDACTED***",
    ],
)
def test_what_is_redacted_already_stays(text: str) -> None:
    assert redact(text) == (text, ())


def test_whole_novels_are_left_alone() -> None:
    """Reads the two novels of `../shared/corpus`; without them, prose made of this file's own."""
    novels = [path.read_text(encoding="utf-8") for path in sorted(NOVELS.glob("*.txt"))]
    prose = TEXTS[TEXTS.index("她把钥匙放在窗台上，钥匙：铜的，生了锈。") :]

    for novel in novels or ["\n".join(prose * 50)]:
        assert redact(novel) == (novel, ())
