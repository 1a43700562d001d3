"""A sentence that speaks of a secret gives it away: who says how a thing is spelt, types it in."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("The password is three small otters, all lower case.", "three small otters"),
        ('Opens with "sycamore" - that\'s the password, all small letters.', "sycamore"),
        ("家里 wifi 密码是 woaichirou,全小写。", "woaichirou"),
        ("开机密码:糯米(全拼不带空格,nuomishimao)。", "nuomishimao"),
        ("Das Passwort ist birnbaum, alles klein.", "birnbaum"),
    ],
)
def test_a_word_that_is_spelt_out_goes(text: str, secret: str) -> None:
    assert redact(text).text == text.replace(secret, PLACEHOLDER)


@pytest.mark.parametrize(
    "text",
    [
        "The password is the name of my cat, all lower case.",
        "Passwords must be all lower case.",
        "Type the title in lower case.",
        "密码须含小写字母和数字。",
    ],
)
def test_advice_and_riddles_stay(text: str) -> None:
    assert redact(text).text == text
