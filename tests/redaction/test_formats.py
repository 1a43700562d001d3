"""Formats of secrets: private keys, however they were pasted, web tokens and URLs."""

import base64
import json

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.samples import LABELLED_VALUES, fake_secret, wrong_redactions

LINES = [fake_secret("{B64}", seed) for seed in range(6)] + [fake_secret("{B38}") + "=="]

TOKEN = fake_secret("{A40}")
PASSWORD = fake_secret("{A14}")
HEADER = base64.urlsafe_b64encode(b'{"alg":"HS256","typ":"JWT"}').decode().rstrip("=")
CLAIMS = base64.urlsafe_b64encode(b'{"sub":"13375558","name":"u"}').decode().rstrip("=")
JWT = f"{HEADER}.{CLAIMS}.{fake_secret('{W43}')}"

EXAMPLES = (
    ("url_credentials", f"mysql://root:{PASSWORD}@127.0.0.1:3306/wn", PASSWORD),
    ("url_credentials", f"redis://:{PASSWORD}@cache:6379/0", PASSWORD),
    ("url_credentials", f"mssql+pyodbc://sa:{PASSWORD}@sql.local/wn", PASSWORD),
    ("url_credentials", f"https://{TOKEN}@example.com/repo.git", TOKEN),
    ("url_credentials", f'"url": "postgres:\\/\\/app:{PASSWORD}@db\\/novel"', PASSWORD),
    ("url_credentials", f"root:{PASSWORD}@tcp(127.0.0.1:3306)/wn", PASSWORD),
    ("json_web_token", f"登录后返回的令牌是{JWT}，有效期两小时。", JWT),
    ("json_web_token", f'{{"a": "x\\n{JWT}\\n"}}', JWT),
    ("json_web_token", f"两段的 {HEADER}.{CLAIMS}. 也算", f"{HEADER}.{CLAIMS}."),
    ("json_web_token", f"My key is {JWT}. Rotate it.", JWT),
)


def block(kind: str, *, headers: str = "") -> str:
    return "\n".join(
        [f"-----BEGIN {kind}-----", *headers.splitlines(), *LINES, f"-----END {kind}-----"]
    )


KEY = block("PRIVATE KEY")

PASTE_FORMS = {
    "plain": KEY,
    "windows": KEY.replace("\n", "\r\n"),
    "rsa": block("RSA PRIVATE KEY"),
    "openssh": block("OPENSSH PRIVATE KEY"),
    "encrypted": block(
        "RSA PRIVATE KEY", headers="Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,AB12\n"
    ),
    "pgp": block("PGP PRIVATE KEY BLOCK", headers="Version: GnuPG v2\n"),
    "one line": KEY.replace("\n", " "),
    "json": json.dumps(KEY)[1:-1],
    "json in json": json.dumps(json.dumps(KEY))[3:-3],
    "concatenated": KEY.replace("\n", '\\n" +\n  "'),
}


def test_a_private_key_becomes_one_placeholder() -> None:
    around = "服务器私钥如下：\n{}\n以上内容请在部署后删除。"

    wrong = wrong_redactions(
        (around.replace("{}", pasted), around.replace("{}", PLACEHOLDER), "private_key_pem")
        for pasted in PASTE_FORMS.values()
    )

    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("margin", ["    ", "> ", "\t"])
def test_an_indented_or_quoted_block_leaves_nothing_of_the_key(margin: str) -> None:
    text = redact("\n".join(margin + line for line in KEY.splitlines()) + "\n后文").text

    assert not any(line in text for line in LINES)
    assert text.endswith("后文")


@pytest.mark.parametrize("dash", ["—", "–", "——"])
def test_dashes_that_a_word_processor_made_do_not_hide_a_key(dash: str) -> None:
    text = redact(f"{KEY.replace('-----', dash)}\n后文").text

    assert not any(line in text for line in LINES)
    assert text.endswith("\n后文")


@pytest.mark.parametrize("cut", [60, 150, 250])
def test_a_key_that_was_cut_off_is_found_by_its_beginning(cut: int) -> None:
    text = redact(f"{KEY[:cut]}\n\n后文 goes on here.").text

    assert text == f"{PLACEHOLDER}\n\n后文 goes on here."


def test_a_service_account_keeps_what_is_no_secret() -> None:
    account = {"project_id": "novel-demo", "private_key": KEY, "client_email": "a@b.example"}

    redacted = json.loads(redact(json.dumps(account)).text)

    assert redacted == {**account, "private_key": PLACEHOLDER}


def test_the_private_lines_of_putty_go() -> None:
    lines = "\n".join(LINES)

    text = redact(
        f"PuTTY-User-Key-File-3: ssh-rsa\nPrivate-Lines: 7\n{lines}\nPrivate-MAC: ab"
    ).text

    assert not any(line in text for line in LINES)
    assert text.endswith("\nPrivate-MAC: ab")


def test_public_halves_and_talk_about_keys_stay() -> None:
    texts = (
        block("PUBLIC KEY"),
        block("CERTIFICATE"),
        f"ssh-rsa {LINES[0]}{LINES[1]} alice@laptop",
        "以 -----BEGIN RSA PRIVATE KEY----- 开头，以 -----END RSA PRIVATE KEY----- 结尾。",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----- marks the beginning of a private key",
    )

    wrong = wrong_redactions((text, text, "") for text in texts)

    assert not wrong, "\n".join(wrong)


def test_web_tokens_and_passwords_in_urls_go_and_the_rest_stays() -> None:
    wrong = wrong_redactions(
        (text, text.replace(secret, PLACEHOLDER), pattern_id)
        for pattern_id, text, secret in EXAMPLES
    )

    assert not wrong, "\n".join(wrong)


HEADER_TOKEN = fake_secret("{A40}")
HEADER_PASSWORD = fake_secret("{A14}")
BASIC = base64.b64encode(f"bob:{HEADER_PASSWORD}".encode()).decode()

HEADER_EXAMPLES = (
    (
        "authorization_header",
        f"curl -H 'Authorization: Bearer {HEADER_TOKEN}' https://example.com",
        HEADER_TOKEN,
    ),
    ("authorization_header", f"Authorization: Token {HEADER_TOKEN}\nHost: x", HEADER_TOKEN),
    ("authorization_header", f'"authorization": "{HEADER_TOKEN}", "n": 1', HEADER_TOKEN),
    ("authorization_header", f"Proxy-Authorization: Basic {BASIC}", BASIC),
    ("bearer_token", f"then send Bearer {HEADER_TOKEN}.", HEADER_TOKEN),
    ("basic_credentials", f"credentials go as Basic {BASIC} there", BASIC),
    ("request_signature", f"X-Amz-Signature={fake_secret('{H64}')}&x=1", fake_secret("{H64}")),
    ("session_cookie", f"Cookie: theme=dark; sessionid={HEADER_TOKEN}; lang=zh", HEADER_TOKEN),
    ("session_cookie", f"Set-Cookie: connect.sid={HEADER_TOKEN}; Path=/; HttpOnly", HEADER_TOKEN),
    ("session_cookie", f"the link has ;jsessionid={HEADER_TOKEN} in it", HEADER_TOKEN),
)


def test_the_secret_goes_and_the_header_stays() -> None:
    wrong = wrong_redactions(
        (text, text.replace(secret, PLACEHOLDER), pattern_id)
        for pattern_id, text, secret in HEADER_EXAMPLES
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


COMMANDS = (
    "curl -u admin:{} https://example.com",
    "mysql -u root -p{} wn",
    "sshpass -p {} ssh a@b",
    "redis-cli -a {} ping",
    "docker login -u bob -p {}",
    "CREATE USER li IDENTIFIED BY '{}';",
    "echo {} | sudo -S ls",
    "ConvertTo-SecureString '{}' -AsPlainText -Force",
)


def test_the_password_goes_and_the_command_stays() -> None:
    wrong = wrong_redactions(
        (command.replace("{}", value), command.replace("{}", PLACEHOLDER), "command_line_password")
        for command in COMMANDS
        for value in LABELLED_VALUES
    )

    assert not wrong, "\n".join(wrong)


KEY_LINES = [fake_secret("{B64}", seed) for seed in range(4)]


def test_of_a_web_key_only_the_private_part_goes() -> None:
    public, private = fake_secret("{W43}", 1), fake_secret("{W43}", 2)
    text = f'{{"kty": "EC", "x": "{public}", "d": "{private}"}}'

    assert redact(text).text == f'{{"kty": "EC", "x": "{public}", "d": "***REDACTED***"}}'


@pytest.mark.parametrize("around", ['"{}",', "'{}',", '  "{}" +', "> {}", "// {}", "{}"])
@pytest.mark.parametrize("stray", ["!", "雨", "\x1b", "-", " "])
def test_a_key_that_is_cut_off_goes_with_a_stray_character_in_any_surroundings(
    around: str, stray: str
) -> None:
    """A page of a file may end before the key does."""
    lines = [*KEY_LINES]
    lines[1] = f"{lines[1][:20]}{stray}{lines[1][20:]}"
    text = "\n".join(around.format(line) for line in ("-----BEGIN PRIVATE KEY-----", *lines))

    shown = redact(text).text

    assert not [line for line in KEY_LINES if line[:16] in shown]


def test_the_tail_of_a_block_that_was_cut_goes() -> None:
    text = "\n".join(["the end of it:", *KEY_LINES, "-----END PRIVATE KEY-----"])

    redacted = redact(text).text

    assert not [line for line in KEY_LINES if line in redacted]
    assert redacted.startswith("the end of it:\n")


def test_a_certificate_stays() -> None:
    text = "\n".join(["-----BEGIN CERTIFICATE-----", *KEY_LINES, "-----END CERTIFICATE-----"])

    assert redact(text).text == text


def test_the_lines_of_a_static_key_go() -> None:
    lines = [fake_secret("{H32}", seed) for seed in range(8)]
    text = "\n".join(["<tls-crypt>", *lines, "</tls-crypt>"])

    assert not [line for line in lines if line in redact(text).text]


def test_bytes_go_where_a_key_pair_is_named() -> None:
    numbers = ", ".join(str(7 * at % 256) for at in range(64))

    assert numbers not in redact(f"keypair: [{numbers}]").text
    assert numbers in redact(f"samples: [{numbers}]").text
