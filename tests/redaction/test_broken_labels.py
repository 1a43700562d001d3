"""A label is known however it is broken, and ordinary words in pieces are left alone."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact


@pytest.mark.parametrize(
    "label",
    [
        "P A S S W O R D:", "p.a.s.s.w.o.r.d =", "PASS WORD:", "**P**assword:", "<b>Pass</b>word:", "K E N N W O R T :", "密　码：", "密-码：", "パ ス ワ ー ド：",
        "비 밀 번 호:", "授权 码：",
    ],
)  # fmt: skip
def test_the_value_goes_and_the_broken_label_stays(label: str) -> None:
    text = f"Notes\n{label} Fen&Dyke31\nport: 5432\n"

    assert redact(text).text == f"Notes\n{label} {PLACEHOLDER}\nport: 5432\n"


def test_a_hyphen_at_the_end_of_a_line_hides_no_label() -> None:
    text = "The pass-\nword for the tapes is “Sp1ndle-drift”, dash included."

    assert redact(text).text == f"The pass-\nword for the tapes is “{PLACEHOLDER}”, dash included."


@pytest.mark.parametrize(
    "text",
    ["P A R T  T W O", "The pass-\nport was gone.", "The pass word system of chapter 12b", "秘 密"],
)
def test_other_words_in_pieces_stay(text: str) -> None:
    assert redact(text).text == text


def test_a_text_of_broken_labels_is_read_once() -> None:
    """There is no clock here: were every label read with all that follow, this would take minutes."""
    text = "p a s s w o r d : Fen&Dyke31\n" * 2_000

    assert redact(text).text == f"p a s s w o r d : {PLACEHOLDER}\n" * 2_000
