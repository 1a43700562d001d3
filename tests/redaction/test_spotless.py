"""What is called spotless holds no secret, whatever stands in the other texts."""

from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction import Redactor
from tests.context.test_seams import LINES

REDACTOR = Redactor()

texts = st.lists(st.sampled_from(LINES), max_size=4).map("\n".join)


@given(many=st.lists(texts, max_size=12))
def test_a_spotless_text_is_left_as_it_is(many: list[str]) -> None:
    told = REDACTOR.spotless(many)

    assert len(told) == len(many)
    for text, spotless in zip(many, told, strict=True):
        if spotless:
            assert not REDACTOR.find(text)


def test_prose_is_spotless_and_its_neighbours_do_not_matter() -> None:
    prose = "林远推开门，雨还在下。"
    secret = "sk-" + "Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv"

    assert REDACTOR.spotless([prose, secret, prose]) == [True, False, True]
    assert REDACTOR.spotless([]) == []
