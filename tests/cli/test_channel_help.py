"""How types, limits and rows are spelled on the terminal."""

from typing import Any

import pytest

from creonowd.cli.channel_help import kind, limits, list_channels

DOCUMENT = {
    "methods": [
        {"name": "pen:dip", "summary": "Take ink."},
        {"name": "pen:" + "write:" * 6 + "on", "summary": "Write on."},
    ]
}


def test_a_long_name_has_a_line_of_its_own() -> None:
    lines = list_channels(DOCUMENT, 100).splitlines()

    assert lines[0] == f"pen:dip{' ' * 25}Take ink."
    assert lines[1:] == [DOCUMENT["methods"][1]["name"], f"{' ' * 32}Write on."]


def test_a_narrow_terminal_gets_the_text_below_the_name() -> None:
    lines = list_channels(DOCUMENT, 44).splitlines()

    assert lines[:2] == ["pen:dip", "    Take ink."]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/components/schemas/Layer"}, "Layer"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map of integer"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"enum": ["utf-8", "base64"]}, "`utf-8` or `base64`"),
        ({}, "anything"),
    ],
)
def test_a_type_is_spelled_in_words(schema: dict[str, Any], expected: str) -> None:
    assert kind(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"minimum": 1, "maximum": 200}, ["1 to 200"]),
        ({"anyOf": [{"minimum": 0}, {"type": "null"}]}, ["at least 0"]),
        ({"exclusiveMinimum": 0, "maximum": 1}, ["over 0, at most 1"]),
        ({"minLength": 1}, ["not empty"]),
        ({"maxItems": 5}, ["at most 5 items"]),
    ],
)
def test_limits_are_spelled_in_words(schema: dict[str, Any], expected: list[str]) -> None:
    assert list(limits(schema)) == expected
