"""Entries of notes, cards and pages."""

import pytest

from creonowd.redaction import redact
from tests.redaction.samples import wrong_redactions

LAYOUTS = (
    "{}: {}",
    "{}\t{}",
    "{}      {}",
    "{} ........ {}",
    "{} – {}",
    "{} → {}",
    "【{}】{}",
    "<td>{}</td><td>{}</td>",
    "<dt>{}</dt>\n<dd>{}</dd>",
    "## {}\n\n> {}",
)
LABELS = (
    "Password",
    "Wi-Fi password",
    "WLAN-Schlüssel",
    "Mot de passe",
    "Clé Wi-Fi",
    "Contraseña",
    "Пароль",
    "登录密码",
    "パスワード",
    "비밀번호",
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_label_is_known_however_its_value_is_set_off(layout: str) -> None:
    texts = [layout.format(label, "Tin-Whistle6") for label in LABELS]

    rest = [text for text in texts if "Tin-Whistle6" in redact(text).text]

    assert rest == []


def test_a_plain_word_goes_only_where_the_line_is_an_entry() -> None:
    entry = "Online-PIN         k9mRt\nTelefon-Kennwort   Apfelstrudel"
    sentence = "My password – I forgot which – was in the drawer."

    assert (
        redact(entry).text == "Online-PIN         ***REDACTED***\nTelefon-Kennwort   ***REDACTED***"
    )
    assert redact(sentence).text == sentence


def test_the_key_of_a_network_is_a_password_and_that_of_a_melody_is_none() -> None:
    wrong = wrong_redactions(
        (
            ("Clé Wi-Fi : figue-verte-7", "Clé Wi-Fi : ***REDACTED***", "labelled_password"),
            ("Clé de fa, mesure 12", "Clé de fa, mesure 12", ""),
            ("Key: F#m, tempo 120", "Key: F#m, tempo 120", ""),
        )
    )

    assert not wrong, "\n".join(wrong)


def test_under_a_label_for_both_the_user_stays() -> None:
    text = "Usuario y contraseña: lvega / Jilguero_44"

    assert redact(text).text == "Usuario y contraseña: lvega / ***REDACTED***"


def test_both_values_of_a_quoted_change_go() -> None:
    text = "Das Passwort wechselt von «nebel» auf «nebel-und-pappeln_7»."

    assert redact(text).text == "Das Passwort wechselt von «***REDACTED***» auf «***REDACTED***»."
