"""What only the document gives away is in no passage; what a passage shows by itself stays."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction import PLACEHOLDER, Redactor
from creonowd.retrieval.passages import Passage, cut, without_secrets

REDACTOR = Redactor()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
TOKEN = "ghp_" + "a1B2" * 9


def key(lines: int, seed: int = 1) -> list[str]:
    rolls = random.Random(seed)
    return ["".join(rolls.choices(LETTERS, k=64)) for _ in range(lines)]


def armoured(kind: str, body: list[str]) -> str:
    return f"-----BEGIN {kind}-----\n" + "\n".join(body) + f"\n-----END {kind}-----\n"


def shown(text: str) -> list[Passage]:
    return list(without_secrets(text, cut(text), REDACTOR))


@pytest.mark.parametrize("kind", ["PGP PRIVATE KEY BLOCK", "RSA PRIVATE KEY", "PRIVATE KEY"])
@pytest.mark.parametrize("lines", [8, 60, 400])
def test_no_line_of_a_key_is_in_any_passage(kind: str, lines: int) -> None:
    body = key(lines)
    text = f"灯塔守夜人点灯。\n\n{armoured(kind, body)}\n灯塔守夜人睡了。\n"

    told = [REDACTOR.redact(passage.text).text for passage in shown(text)]

    assert not [line for line in body if any(line in text for text in told)]
    assert any("灯塔守夜人睡了。" in text for text in told)


def test_a_token_in_a_line_that_is_cut_is_in_neither_piece() -> None:
    """A line without a stop is cut where it is full, be that in the middle of a token."""
    for length in range(1380, 1500, 4):
        text = "雪" * 340 + "a" * (length - 1360) + f" token={TOKEN} " + "雨" * 400

        told = "".join(REDACTOR.redact(passage.text).text for passage in shown(text))

        assert not any(TOKEN[at : at + 12] in told for at in range(len(TOKEN) - 12))


def test_a_secret_that_lies_whole_in_a_passage_is_left_to_the_engine() -> None:
    """Who redacts also tells what was taken out, and of which source."""
    (passage,) = shown(f"他把 {TOKEN} 写在纸上。")

    assert TOKEN in passage.text


def test_places_stay_those_of_the_document() -> None:
    text = f"甲。\n\n{armoured('PRIVATE KEY', key(60))}\n乙。\n"

    for before, after in zip(cut(text), shown(text), strict=True):
        assert (before.start, before.end, before.lines) == (after.start, after.end, after.lines)


def test_a_text_without_secrets_is_as_it_was() -> None:
    text = "灯塔守夜人点灯。\n\n" * 200

    assert shown(text) == list(cut(text))


@given(st.lists(st.sampled_from([TOKEN, "雨停了。", "\n", "\n\n", "a", " ", "密码：", "Xy9k3Qz8"])))
def test_what_the_document_hides_no_passage_shows(pieces: list[str]) -> None:
    text = "".join(pieces)
    hidden = {text[found.start : found.end] for found in REDACTOR.find(text)}

    told = [REDACTOR.redact(passage.text).text for passage in shown(text)]

    kept = REDACTOR.redact(text).text.replace(PLACEHOLDER, "\0")
    assert not [s for s in hidden if s not in kept and any(s in text for text in told)]
