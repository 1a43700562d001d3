"""Passwords on command lines whose flags do not name them: `-u user:pass`, `mysql -p…`.

`labels` finds the values of flags that name them, such as `--password`.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import NOTHING, MatchSpan, RedactionRule, first_group
from creonowd.redaction.shape import is_plain_value, is_secret, is_stand_in

LONGEST_COMMAND = 120

_PROGRAM = re.compile(
    r"(?:sshpass|mysql\w{0,8}|mariadb\w{0,8}|mongo\w{0,8}|redis-cli|sqlcmd|7za?|zip|unzip|ldapsearch"
    r"|(?:docker|podman|helm registry|az|heroku) login)(?![\w-])"
)
_PAIR = re.compile(r"[\"' ][\w.-]{1,64}:([^\s\"'|]{3,64})[\"']?[ ]{0,4}\|[ ]{0,4}(?:sudo )?\Z")
_ECHO = re.compile(r"echo[ ]{1,4}[\"']?([^\s\"'|]{4,64})[\"']?[ ]{0,4}\|[ ]{0,4}\Z")

_ARGUMENT = r"[\"']?([^\s\"'`，。；$<-][^\s\"'`，。；]{2,128}+)"


def _pair(match: "re.Match[str]") -> Sequence[MatchSpan]:
    value = match[1]
    is_sure = is_secret(value) or (len(value) >= 5 and is_plain_value(value))
    return (match.span(1),) if is_sure else NOTHING


def _argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the value of a one-letter flag if a program that reads passwords stands before it."""
    if not is_secret(match[1], digits=True):
        return NOTHING
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    command = re.split(r"[\n;|&]", head)[-1]
    return (match.span(1),) if _PROGRAM.search(command) else NOTHING


def _encryption_argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take the key of `openssl enc -k …` and the password of `smbclient -U user%…`."""
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    command = re.split(r"[\n;|&]", head)[-1]
    is_known = match[0].startswith(" -U") or re.search(r"openssl (?:enc|aes)", command)
    return _plain_argument(match) if is_known else NOTHING


def _piped_pair(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `| chpasswd` for the `user:password` that is piped into it."""
    first = max(0, match.start() - LONGEST_COMMAND)
    pair = _PAIR.search(match.string, first, match.start())
    return NOTHING if pair is None or is_stand_in(pair[1]) else (pair.span(1),)


def _plain_argument(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Take any value where a program reads nothing but a password."""
    return (match.span(1),) if is_plain_value(match[1], code=False) else NOTHING


def _piped_password(match: "re.Match[str]") -> Sequence[MatchSpan]:
    """Look back from `| sudo -S` for the password that is piped into it."""
    head = match.string[max(0, match.start() - LONGEST_COMMAND) : match.start()]
    echo = _ECHO.search(head)
    if echo is None or is_stand_in(echo[1]):
        return NOTHING
    return ((match.start() - len(head) + echo.start(1), match.start() - len(head) + echo.end(1)),)


RULES = (
    RedactionRule(
        "command_line_password",
        (
            "sshpass ",
            "redis-cli ",
            "zip ",
            "unzip ",
            "7z ",
            "7za ",
            "mysql",
            "mariadb",
            "docker login",
            "podman login",
            "mongo",
            "ssh-keygen ",
        ),
        rf"(?:sshpass[ ]{{1,4}}-p[ ]?|redis-cli (?:[^\n;|&]{{0,80}}? )?-a[ ]|(?:un)?zip (?:[^\n;|&]{{0,80}}? )?-P[ ]"
        rf"|7za? (?:[^\n;|&]{{0,80}}? )?-p|(?:mysql\w{{0,8}}|mariadb\w{{0,8}}) (?:[^\n;|&]{{0,80}}? )?-p"
        rf"|(?:docker|podman) login (?:[^\n;|&]{{0,80}}? )?-p[ ]|ssh-keygen (?:[^\n;|&]{{0,80}}? )?-N[ ]|mongo\w{{0,8}} (?:[^\n;|&]{{0,80}}? )?-p[ ]){_ARGUMENT}",
        _plain_argument,
    ),
    RedactionRule(
        "command_line_password",
        (
            "-storepass ",
            "-keypass ",
            "-passin pass:",
            "-passout pass:",
            "-pass pass:",
            "htpasswd -b",
            "net user ",
            "/user:",
        ),
        rf"(?i)(?:-(?:store|key)pass[ ]|-pass(?:in|out)?[ ]pass:|htpasswd -b\w{{0,3}} \S{{1,128}} \S{{1,64}} "
        rf"|net user \S{{1,64}} (?!/)|/user:\S{{1,64}} (?!/)){_ARGUMENT}",
        _plain_argument,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        (" -k ", " -u "),
        rf"(?: -k | -U [\w.\\-]{{1,64}}%){_ARGUMENT}",
        _encryption_argument,
        bounded=False,
    ),
    RedactionRule(
        "command_line_password",
        ("chpasswd",),
        "chpasswd",
        _piped_pair,
        bounded=False,
    ),
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
        _piped_password,
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
