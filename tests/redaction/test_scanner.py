"""A scan near the placeholders finds all that a scan of the whole text would."""

from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction.all_rules import RULES
from creonowd.redaction.redactor import placeholder_starts, replace_spans
from creonowd.redaction.scanner import NEAR, make_scanner, scan
from tests.redaction.samples import MOSAICS, fake_secret

SCANNER = make_scanner(RULES)
FAR = "他们走了很远，key and token，/a/b C: 。\n" * (NEAR // 12)


@given(MOSAICS, MOSAICS, st.sampled_from(["", " ", FAR]))
def test_nothing_new_is_found_far_from_a_change(before: str, after: str, between: str) -> None:
    text = f"{FAR}{before}{between}{after}{FAR}"
    found = scan(SCANNER, text)
    clean = replace_spans(text, found)

    assert scan(SCANNER, clean, placeholder_starts(found)) == scan(SCANNER, clean)


def test_what_a_change_brings_within_reach_is_found() -> None:
    """Only so much of a header is read; once its first values are short, the last ones are."""
    values = [fake_secret("{A90}", number) for number in range(60)]
    text = "Cookie: " + "; ".join(f"sid={value}" for value in values)
    found = scan(SCANNER, text)
    clean = replace_spans(text, found)

    more = scan(SCANNER, clean, placeholder_starts(found))

    assert 0 < len(found) < len(values) == len(found) + len(more)
    assert more == scan(SCANNER, clean)


def test_what_a_rule_needs_must_be_there() -> None:
    assert scan(SCANNER, "https://mei:Zq8Lw2Xv9/x") == []
    assert scan(SCANNER, "https://mei:Zq8Lw2Xv9@x.example") != []
