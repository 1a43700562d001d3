"""Numbers that open something, and those that only count."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from creonowd.redaction.access_codes import RULES

OWN = {rule.pattern_id for rule in RULES}


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("PIN: 7043", "7043"),
        ("The door code is 5821.", "5821"),
        ("Alarm code: 3907", "3907"),
        ("Geheimzahl: 6618", "6618"),
        ("门禁密码：4471", "4471"),
        ("safe combination: 18-32-07", "18-32-07"),
    ],
)
def test_a_number_goes_by_its_name_or_by_what_it_opens(text: str, secret: str) -> None:
    redacted = redact(text)

    assert redacted.text == text.replace(secret, PLACEHOLDER)


@pytest.mark.parametrize(
    "text",
    [
        "Error code: 5821",
        "The area code is 0571.",
        "Room 5821 has a door.",
        "In 1947 she closed the safe.",
        "第4471章",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    assert redact(text).text == text
