"""Passwords on command lines whose flags do not name them: `-u user:pass`, `mysql -p…`.

`labels` finds the values of flags that name them, such as `--password`.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule, first_group
from creonowd.redaction.shape import is_secret, is_stand_in

LONGEST_COMMAND = 120

_PROGRAM = re.compile(
    r"(?:sshpass|mysql\w{0,8}|mariadb\w{0,8}|mongo\w{0,8}|redis-cli|sqlcmd|7za?|zip|unzip|ldapsearch"
    r"|(?:docker|podman|helm registry|az|heroku) login)(?![\w-])"
)
_ECHO = re.compile(r"echo[ ]{1,4}[\"']?([^\s\"'|]{4,64})[\"']?[ ]{0,4}\|[ ]{0,4}\Z")


def _pair(match: "re.Match[str]") -> Sequence[MatchSpan]:
    return (match.span(1),) if is_secret(match[1]) else NOTHING


def _argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of a one-letter flag if a program that reads passwords stands before it."""
    if not is_secret(match[1], digits=True):
        return NOTHING
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    command = re.split(r"[\n;|&]", head)[-1]
    return (match.span(1),) if _PROGRAM.search(command) else NOTHING


def _piped(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `| sudo -S` for the password that is piped into it."""
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    echo = _ECHO.search(head)
    if echo is None or is_stand_in(echo[1]):
        return NOTHING
    return ((match.start() - len(head) + echo.start(1), match.start() - len(head) + echo.end(1)),)


RULES = (
    RedactionRule(
        "command_line_password",
        (" -u", "--user ", "--user=", "--proxy-user "),
        r"(?: -u|--(?:proxy-)?user)[ =]?[\"']?[^\s:\"']{1,64}:([^\s\"'`，。；]{4,128}+)",
        _pair,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (" -p", " -a ", " -w "),
        r" -[pPaw][ =]?[\"']?([^\s\"'`，。；-][^\s\"'`，。；]{3,128}+)",
        _argument,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        ("sudo -s",),
        "sudo -S",
        _piped,
    ),
    RedactionRule(
        "command_line_password",
        ("identified by ", "identified with "),
        r"(?i)identified (?:with \S{1,40} )?by (?:password )?[\"']([^\s\"']{4,128})[\"']",
        _pair,
    ),
    RedactionRule(
        "command_line_password",
        ("convertto-securestring ",),
        r"(?i)convertto-securestring (?:-string )?[\"']([^\"'\n]{4,128})[\"']",
        first_group,
    ),
)
