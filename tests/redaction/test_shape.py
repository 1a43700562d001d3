"""What a string looks like by itself."""

import pytest

from creonowd.redaction import shape


@pytest.mark.parametrize("value", ["Xk9#mQ2vL7", "hT7bQz0Lw3Rk", "9f8a-Qm2x-77Lp"])
def test_a_mixture_is_a_secret(value: str) -> None:
    assert shape.is_secret(value)
    assert not shape.is_words(value)


@pytest.mark.parametrize(
    "value", ["<password>", "xxxxxxxx", "********", "changeme", "your-password"]
)
def test_a_stand_in_is_none(value: str) -> None:
    assert shape.is_stand_in(value)


@pytest.mark.parametrize("value", ["os.environ['KEY']", "getpass()", "config.password"])
def test_an_expression_is_code(value: str) -> None:
    assert shape.is_code(value)


@pytest.mark.parametrize("value", ["sunshine", "correct-horse", "Xk9#mQ2vL7"])
def test_a_value_is_no_code(value: str) -> None:
    assert not shape.is_code(value)


@pytest.mark.parametrize(("letters", "expected"), [("window", True), ("xqzkvj", False)])
def test_words_are_known_by_their_letters(letters: str, *, expected: bool) -> None:
    assert shape.is_wordlike(letters) is expected


def test_oddity_grows_from_words_to_secrets() -> None:
    values = ("sunshine", "sunshine7", "Xk9#mQ2vL7")

    assert sorted(values, key=shape.oddity) == list(values)
