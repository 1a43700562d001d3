"""Passwords on command lines whose flags do not name them: `-u user:pass`, `mysql -p…`.

Knows these programs; flags that name what they carry are `labels`.
"""

import re
from collections.abc import Sequence

from creonowd.redaction.rules import NOTHING, Rule, Span, first_group
from creonowd.redaction.shape import is_secret

_PROGRAMS = (
    "sshpass", "mysql", "mariadb", "mongo", "docker login", "redis-cli", "sqlcmd", "7z ", "zip ",
    "ldapsearch", "podman login", "helm registry login",
)  # fmt: skip


def _argument(match: "re.Match[str]") -> Sequence[Span]:
    return (match.span(1),) if is_secret(match[1], digits=True) else NOTHING


def _pair(match: "re.Match[str]") -> Sequence[Span]:
    return (match.span(1),) if is_secret(match[1]) else NOTHING


RULES = (
    Rule(
        "command_line_password",
        (" -u", "--user ", "--user=", "--proxy-user "),
        r"(?: -u|--(?:proxy-)?user)[ =]?[\"']?[^\s:\"']{1,64}:([^\s\"'`，。；]{4,128}+)",
        _pair,
        bounded=False,
    ),
    Rule(
        "command_line_password",
        _PROGRAMS,
        r"[a-z0-9-]+(?: login)?(?:dump|admin|sh)?[^\n;|&]{0,120}?[ ]-[paPw][ =]?[\"']?([^\s\"'`，。；-][^\s\"'`，。；]{3,128}+)",
        _argument,
    ),
    Rule(
        "command_line_password",
        ("convertto-securestring ",),
        r"(?i)convertto-securestring (?:-string )?[\"']([^\"'\n]{4,128})[\"']",
        first_group,
    ),
)
