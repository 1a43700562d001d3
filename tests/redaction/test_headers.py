"""What HTTP carries: authorization, bearer tokens, signatures and cookies."""

import base64

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.samples import fake_secret, wrong_redactions

TOKEN = fake_secret("{A40}")
PASSWORD = fake_secret("{A14}")
BASIC = base64.b64encode(f"bob:{PASSWORD}".encode()).decode()

EXAMPLES = (
    ("authorization_header", f"curl -H 'Authorization: Bearer {TOKEN}' https://example.com", TOKEN),
    ("authorization_header", f"Authorization: Token {TOKEN}\nHost: x", TOKEN),
    ("authorization_header", f'"authorization": "{TOKEN}", "n": 1', TOKEN),
    ("authorization_header", f"Proxy-Authorization: Basic {BASIC}", BASIC),
    ("bearer_token", f"then send Bearer {TOKEN}.", TOKEN),
    ("basic_credentials", f"credentials go as Basic {BASIC} there", BASIC),
    ("request_signature", f"X-Amz-Signature={fake_secret('{H64}')}&x=1", fake_secret("{H64}")),
    ("session_cookie", f"Cookie: theme=dark; sessionid={TOKEN}; lang=zh", TOKEN),
    ("session_cookie", f"Set-Cookie: connect.sid={TOKEN}; Path=/; HttpOnly", TOKEN),
    ("session_cookie", f"the link has ;jsessionid={TOKEN} in it", TOKEN),
)


def test_the_secret_goes_and_the_header_stays() -> None:
    wrong = wrong_redactions(
        (text, text.replace(secret, PLACEHOLDER), pattern_id)
        for pattern_id, text, secret in EXAMPLES
    )

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("length", [4000, 4090, 5000, 100_000])
def test_a_cookie_longer_than_a_header_should_be_goes_whole(length: int) -> None:
    value = fake_secret(f"{{A{length}}}")

    redacted = redact(f"Cookie: theme=dark; sid={value}; lang=en\nok").text

    assert redacted == f"Cookie: theme=dark; sid={PLACEHOLDER}; lang=en\nok"


def test_a_header_of_many_sessions_is_read_to_its_end() -> None:
    values = [fake_secret("{A90}", number) for number in range(2000)]

    redacted = redact("Cookie: " + "; ".join(f"sid={value}" for value in values)).text

    assert redacted == "Cookie: " + "; ".join([f"sid={PLACEHOLDER}"] * len(values))
