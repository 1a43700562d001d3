"""Recovery phrases of wallets, in every way in which people write words down."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact

WORDS = [
    "orbit",
    "velvet",
    "canyon",
    "ladder",
    "misty",
    "pencil",
    "rocket",
    "garden",
    "tunnel",
    "silver",
    "hockey",
    "amount",
]
NUMBERED = [f"{number}. {word}" for number, word in enumerate(WORDS, start=1)]


@pytest.mark.parametrize(
    "text",
    [
        f"Seed phrase: {' '.join(WORDS)}",
        f"Recovery phrase:\n{' '.join(WORDS)}",
        "My recovery phrase:\n" + "\n".join(NUMBERED),
        f"mnemonic = {WORDS}",
        "Seed phrase: " + ", ".join(WORDS),
    ],
)
def test_no_word_of_a_phrase_is_left(text: str) -> None:
    redacted = redact(text)

    assert [word for word in WORDS if word in redacted.text] == []
    assert PLACEHOLDER in redacted.text
    assert {one.pattern_id for one in redacted.evidence} == {"recovery_phrase"}


@pytest.mark.parametrize(
    "text",
    [
        f"Lesson three: {' '.join(WORDS)}",
        "She wrote the recovery phrase on a card, and the card went into the fire with the letters.",
        "A recovery phrase has twelve words.",
    ],
)
def test_other_words_stay(text: str) -> None:
    assert redact(text).text == text
