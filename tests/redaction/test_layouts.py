"""Secrets that stand below or beside their name."""

import pytest

from creonowd.redaction import PLACEHOLDER, redact

SECRET = "Vq7-tundra-Kx"


@pytest.mark.parametrize(
    "layout",
    [
        "Password\n{}",
        "Password:\n\n  {}",
        "| user | password |\n|---|---|\n| anna | {} |",
        "user,password\nanna,{}",
        "<key>password</key>\n<string>{}</string>",
        "<password>{}</password>",
    ],
)
def test_a_value_goes_where_its_place_gives_it_a_name(layout: str) -> None:
    assert redact(layout.format(SECRET)).text == layout.format(PLACEHOLDER)


def test_only_the_column_of_the_secret_goes() -> None:
    table = "| password | city |\n|---|---|\n| {} | Nottingham-22 |"

    assert redact(table.format(SECRET)).text == table.format(PLACEHOLDER)


@pytest.mark.parametrize(
    "text",
    [
        "| page | title |\n|---|---|\n| 12 | The password |",
        "The password\n\nShe knew it once.",
    ],
)
def test_tables_and_headings_without_a_secret_stay(text: str) -> None:
    assert redact(text).text == text
