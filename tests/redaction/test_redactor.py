"""The interface everyone relies on."""

from creonowd.redaction import PLACEHOLDER, RedactionEvidence, redact


def test_the_example_of_the_specification_is_caught() -> None:
    redacted = redact("apiKey=sk-THIS_SHOULD_BE_REDACTED", ".creonow/rules/style.md")

    assert redacted.text == f"apiKey={PLACEHOLDER}"
    assert redacted.evidence == (
        RedactionEvidence(
            pattern_id="openai_api_key_sk", source_ref=".creonow/rules/style.md", match_count=1
        ),
    )
