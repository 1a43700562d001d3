"""How sure a name makes us of a secret, in any style and language."""

import pytest

from creonowd.redaction.secret_names import Strength, is_secret_name, strength_of


@pytest.mark.parametrize(
    "name",
    [
        "DB_KENNWORT", "motDePasseFtp".removesuffix("Ftp"), "MOT_DE_PASSE", "contraseña", "senhaBanco".removesuffix("Banco"), "admin_wachtwoord",
        "pass_word", "userPassword", "smtp-password", "palavra_passe", "wifiKey", "hasło", "管理员密码",
    ],
)  # fmt: skip
def test_a_password_is_known_by_its_last_words(name: str) -> None:
    assert strength_of(name) is Strength.PASSWORD


@pytest.mark.parametrize(
    "name", ["PASSWORD_FTP", "passwordForBackup", "MOT_DE_PASSE_BDD", "contraseñaBD"]
)
def test_a_password_may_be_qualified_behind_its_name(name: str) -> None:
    assert strength_of(name) is Strength.QUALIFIED
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "password_hint", "passwordPolicy", "PASSWORD_HASHER", "passwort_feld", "passwordChanged", "token_count", "primary_key", "passportNumber",
    ],
)  # fmt: skip
def test_what_only_belongs_to_a_password_is_none(name: str) -> None:
    assert not is_secret_name(name)
