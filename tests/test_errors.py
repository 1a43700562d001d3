"""The catalogue is complete, and says in two languages what to do."""

import pytest

from creonowd.errors import CATALOGUE, DaemonError, ErrorCode

NUMBERS = {-32700, -32600, -32601, -32602, -32603, -32800, -32803}


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_has_a_meaning(code: ErrorCode) -> None:
    meaning = CATALOGUE[code]

    assert meaning.number in NUMBERS
    assert meaning.english.endswith(".")
    assert meaning.chinese.endswith("。")


def test_an_error_without_a_message_says_what_the_catalogue_says() -> None:
    error = DaemonError(ErrorCode.NOT_FOUND, name="x")

    assert error.message == CATALOGUE[ErrorCode.NOT_FOUND].english
    assert error.details == {"name": "x"}
    assert str(error).startswith("NOT_FOUND: ")
