"""Private keys without the lines around them that name one."""

from creonowd.redaction import redact
from tests.redaction.samples import fake_secret

LINES = [fake_secret("{B64}", seed) for seed in range(4)]


def test_of_a_web_key_only_the_private_part_goes() -> None:
    public, private = fake_secret("{W43}", 1), fake_secret("{W43}", 2)
    text = f'{{"kty": "EC", "x": "{public}", "d": "{private}"}}'

    assert redact(text).text == f'{{"kty": "EC", "x": "{public}", "d": "***REDACTED***"}}'


def test_the_tail_of_a_block_that_was_cut_goes() -> None:
    text = "\n".join(["the end of it:", *LINES, "-----END PRIVATE KEY-----"])

    redacted = redact(text).text

    assert not [line for line in LINES if line in redacted]
    assert redacted.startswith("the end of it:\n")


def test_a_certificate_stays() -> None:
    text = "\n".join(["-----BEGIN CERTIFICATE-----", *LINES, "-----END CERTIFICATE-----"])

    assert redact(text).text == text


def test_the_lines_of_a_static_key_go() -> None:
    lines = [fake_secret("{H32}", seed) for seed in range(8)]
    text = "\n".join(["<tls-crypt>", *lines, "</tls-crypt>"])

    assert not [line for line in lines if line in redact(text).text]


def test_bytes_go_where_a_key_pair_is_named() -> None:
    numbers = ", ".join(str(7 * at % 256) for at in range(64))

    assert numbers not in redact(f"keypair: [{numbers}]").text
    assert numbers in redact(f"samples: [{numbers}]").text
