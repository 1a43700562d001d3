"""A private key goes as a whole, however it was pasted; a public one stays."""

import json

import pytest

from creonowd.redaction import PLACEHOLDER, redact
from tests.redaction.made_up import made_up

LINES = [made_up("{B64}", seed) for seed in range(6)] + [made_up("{B38}") + "=="]


def block(kind: str, *, headers: str = "") -> str:
    return "\n".join(
        [f"-----BEGIN {kind}-----", *headers.splitlines(), *LINES, f"-----END {kind}-----"]
    )


KEY = block("PRIVATE KEY")

PASTED = {
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


@pytest.mark.parametrize("pasted", PASTED.values(), ids=PASTED.keys())
def test_the_whole_block_is_one_placeholder(pasted: str) -> None:
    text, evidence = redact(f"服务器私钥如下：\n{pasted}\n以上内容请在部署后删除。")

    assert text == f"服务器私钥如下：\n{PLACEHOLDER}\n以上内容请在部署后删除。"
    assert [piece.pattern_id for piece in evidence] == ["private_key_pem"]


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


@pytest.mark.parametrize(
    "text",
    [
        block("PUBLIC KEY"),
        block("CERTIFICATE"),
        f"ssh-rsa {LINES[0]}{LINES[1]} alice@laptop",
        "以 -----BEGIN RSA PRIVATE KEY----- 开头，以 -----END RSA PRIVATE KEY----- 结尾。",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY----- marks the beginning of a private key",
    ],
)
def test_public_halves_and_talk_about_keys_stay(text: str) -> None:
    assert redact(text).text == text
