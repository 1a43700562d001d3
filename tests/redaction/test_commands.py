"""Secrets named by their place in a statement or a command."""

from creonowd.redaction import redact


def test_of_a_row_only_the_column_of_the_password_goes() -> None:
    text = (
        "INSERT INTO users (name, pass) VALUES ('bob', 'it''s_walnut77'), ('eve', 'Otter.Holt.9');"
    )

    assert redact(text).text == (
        "INSERT INTO users (name, pass) VALUES ('bob', '***REDACTED***'), ('eve', '***REDACTED***');"
    )


def test_a_column_about_passwords_stays() -> None:
    text = "INSERT INTO users (name, password_hint) VALUES ('bob', 'first dog');"

    assert redact(text).text == text


def test_what_a_script_sends_goes_only_where_it_was_asked_for_a_password() -> None:
    asked = 'expect "assword:"\nsend "walnut tree\\r"'
    greeting = 'expect "login:"\nsend "bob\\r"'

    assert redact(asked).text == 'expect "assword:"\nsend "***REDACTED***\\r"'
    assert redact(greeting).text == greeting


def test_what_stands_beside_an_address_goes_if_it_can_only_be_a_password() -> None:
    login = "Agent's portal -> me@marlow.example -> Quill&Ink_1923"
    contact = "marlow@post.example, Room B1204, ext. 4471"

    assert redact(login).text == "Agent's portal -> me@marlow.example -> ***REDACTED***"
    assert redact(contact).text == contact


def test_the_id_of_a_user_is_secret_only_beside_a_proxy() -> None:
    user = "aa0e2051-0d2b-4807-a6f6-0b28e2f12e8e"

    assert user not in redact(f"type: vmess, port: 443, uuid: {user}").text
    assert user in redact(f"chapter uuid: {user}").text
