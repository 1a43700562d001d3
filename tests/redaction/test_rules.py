"""What holds for every rule: it has an example, and its work grows no faster than the text."""

import sys
from types import FrameType
from typing import Any

from creonowd.redaction import redact
from creonowd.redaction.all_rules import RULES
from tests.redaction.samples import fake_secret, vendor_templates

HOSTILE = (
    "eyJ", "-eyJ", "eyJ.", "eyJaaaaaaaa.", "password=", "password: ", "密码：", "密码是", "/home/a ",
    "/home/", "/home/!", "C:\\a\\", "C:\\", "C:/", "://a:b", "\\\\aa\\bb", "-----BEGIN PRIVATE KEY-----",
    "sk-", "sk-a", "key=", "cookie: a=b;", "authorization: ", "bearer a ", "\\u94a5", "a\u200b", ".aaaaaa.",
    "'/home/", '"C:\\a b', " -u a:", "mysql -p a ", "file:///a ", "C:\\a b c d e ", "/Users/A B C D E ",
    "password=a.b.", "密码（", "<password>", "sk-sk-", "a:b@tcp(", "basic aaaaaaaaaaaa", "signature=",
    fake_secret("sk-{A20} "), fake_secret("password={A9}\n"), "/home/lisi/x.md ", "ｓｋ－", '" + "a',
    "a,password\n", "a,password\nb,c\n", "| a | password |\n|---|---|\n| b | Xy9k3Qz8 |\n", "password\nXy9k3Qz8\n",
    "mnemonic: ", "seed phrase: lamp orbit velvet canyon ", "12 words (", "a:b1@a.bc ", "@a.b", "密码从a1b改成c2d",
    "use Xy9k3 as the password ", "<password>Xy9k3</password>", "<key>password</key><string>", "hook/", "://hook/a",
    "wifi:P:", '"name": "sid", "value": "', "Bo: password?\nMei: Xy9k3Qz8\n", "backup codes: 1234-5678 ",
    "sk-aB3xZ9kQ2mN7pL4rT8vW\naB3xZ9kQ2mN7pL4rT8vW\n", "mysql -p", "net user ", ":543", "$1$", "pin is ", "login: a/",
    "パスワードは", "otpauth://a", "admin/", "log in with a and ", "echo a:b|chpasswd", "-----BEGIN OpenVPN Static key V1-----",
)  # fmt: skip


def calls(text: str) -> int:
    """Count the calls into Python and C code, a measure that no slow machine disturbs."""
    count = 0

    def counting(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        redact(text)
    finally:
        sys.setprofile(None)
    return count


def test_every_pattern_has_an_example() -> None:
    vendors = {pattern_id for pattern_id, _ in vendor_templates()}
    elsewhere = {
        "access_key_pair", "authorization_header", "basic_credentials", "bearer_token",
        "command_line_password", "discord_webhook_url", "feishu_webhook_url", "file_url_abs_path",
        "json_web_token", "labelled_secret", "labelled_secret_zh", "private_key_pem",
        "private_key_putty", "request_signature", "session_cookie", "slack_webhook_url",
        "unc_abs_path", "unix_abs_path", "url_credentials", "wecom_webhook_url", "windows_abs_path",
        "credential_pair", "labelled_password", "labelled_pin", "otp_secret", "password_hash",
        "pgpass_password", "recovery_code", "recovery_phrase", "secret_below_label",
        "secret_in_answer", "secret_in_column", "secret_in_markup", "webhook_url", "wifi_password",
    }  # fmt: skip

    assert {rule.pattern_id for rule in RULES} == vendors | elsewhere


def test_twice_the_text_is_not_four_times_the_work() -> None:
    """The calls may grow a little faster at first, where a longest path ends; a square would show."""
    wrong: list[str] = []
    for piece in HOSTILE:
        short = piece * (12_000 // len(piece))
        redact(short)
        once, twice = calls(short), calls(short * 2)
        if twice > 3 * once:
            wrong.append(f"{piece!r}: {once} calls, then {twice}")

    assert not wrong, "\n".join(wrong)


def test_a_text_of_nothing_but_anchors_is_redacted_in_good_time() -> None:
    """There is no clock here: were any rule quadratic, this test alone would take hours."""
    wrong: list[str] = []
    for anchor in sorted({anchor for rule in RULES for anchor in rule.anchors}):
        redacted = redact((anchor + "a1") * (20_000 // len(anchor))).text
        if redact(redacted).text != redacted:
            wrong.append(repr(anchor))

    assert not wrong, "\n".join(wrong)
