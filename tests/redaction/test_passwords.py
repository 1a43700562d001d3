"""Passwords that look like words, behind a name that leaves no doubt."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("Wi-Fi: Lindenbaum / PW: birke", "birke"),
        ("密码是六个八", "六个八"),
        ("密码：八个8", "八个8"),
        ("密码是芝麻开门，别告诉外人", "芝麻开门"),
        ("密码haitang77", "haitang77"),
    ],
)
def test_a_word_goes_where_only_a_password_can_stand(text: str, secret: str) -> None:
    redacted = redact(text)

    assert redacted.text == text.replace(secret, PLACEHOLDER)
    assert [one.pattern_id for one in redacted.evidence] == ["labelled_password"]


@pytest.mark.parametrize(
    "text",
    [
        "Password: required",
        "Passwords: a short history of the locked door.",
        "密码学是一门古老的学问。",
        "密码是他的生日，别告诉外人",
        "She asked for the password, and he laughed.",
    ],
)
def test_prose_and_form_fields_stay(text: str) -> None:
    assert redact(text).text == text
