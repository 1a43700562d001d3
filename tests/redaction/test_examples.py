"""The gate: how much of a labelled set is redacted, harmed and lost."""

import pytest

from testing.redaction_examples import SHARED, Example, Score, read_examples, score
from tests.redaction.samples import HARMLESS_LINES, fake_secret, vendor_templates


def own_examples() -> list[Example]:
    secrets = [fake_secret(template, 99) for _, template in vendor_templates()]
    found = [
        Example(
            id=secret[:6],
            tier="core",
            text=f"密钥是{secret}，请勿外传。",
            must_redact=(secret,),
            must_keep=("请勿外传。",),
        )
        for secret in secrets
    ]
    left = [
        Example(id=text[:6], tier="core", text=text, must_keep=(text,)) for text in HARMLESS_LINES
    ]
    return found + left


def gate(score: Score) -> tuple[bool, bool, bool]:
    return score.recall >= 0.99, score.harm <= 0.01, score.loss <= 0.005


def test_fake_secrets_and_prose_pass_the_gate() -> None:
    (result,) = score(own_examples()).values()

    assert gate(result) == (True, True, True)


def test_the_shared_examples_pass_the_gate() -> None:
    """Reads `../shared/redaction/examples.jsonl`; without it, the examples of these tests stand in."""
    examples = read_examples(SHARED) if SHARED.exists() else own_examples()

    results = score(examples)

    assert gate(results["core"]) == (True, True, True)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("a ***REDACTED*** b", (1.0, 0.0)),
        ("a secret b", (0.0, 0.0)),
        ("***REDACTED***", (1.0, 1.0)),
    ],
)
def test_the_score_counts_what_survived_and_what_was_harmed(
    output: str, expected: tuple[float, float]
) -> None:
    example = Example(
        id="x", tier="core", text="a secret b", must_redact=("secret",), must_keep=("b",)
    )

    result = score([example], lambda _text: output)["core"]

    assert (result.recall, result.harm) == expected
