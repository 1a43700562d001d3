"""Passwords of programs whose flags do not name them."""

from creonowd.redaction import PLACEHOLDER
from tests.redaction.samples import LABELLED_VALUES, wrong_redactions

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
