"""The catalogue is complete, and says in two languages what to do."""

import ast
import errno
from pathlib import Path

import pytest

import creonowd
from creonowd.errors import CATALOGUE, CHINESE, DaemonError, ErrorCode, Wording, disk_error

PACKAGE = Path(creonowd.__file__).parent

NUMBERS = {-32700, -32600, -32601, -32602, -32603, -32800, -32803}


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_has_a_meaning(code: ErrorCode) -> None:
    meaning = CATALOGUE[code]

    assert meaning.number in NUMBERS
    assert meaning.english.endswith(".")
    assert meaning.chinese.endswith("。")


def test_an_error_without_a_message_says_what_the_catalogue_says() -> None:
    error = DaemonError(ErrorCode.NOT_FOUND, name="x")

    assert error.message == CATALOGUE[ErrorCode.NOT_FOUND].english
    assert error.wording.chinese == CATALOGUE[ErrorCode.NOT_FOUND].chinese
    assert error.details == {"name": "x"}
    assert str(error).startswith("NOT_FOUND: ")


def literal_messages() -> list[tuple[str, str]]:
    """Find every message of an error that is one English text."""
    found: list[tuple[str, str]] = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) != "DaemonError":
                continue
            message = node.args[1] if len(node.args) > 1 else None
            if isinstance(message, ast.Constant) and isinstance(message.value, str):
                found.append((path.name, message.value))
    return found


def test_every_message_that_is_always_the_same_has_its_chinese() -> None:
    messages = literal_messages()

    assert len(messages) > 50
    assert [one for one in messages if one[1] not in CHINESE] == []


def test_no_chinese_is_kept_for_a_message_that_is_gone() -> None:
    assert CHINESE.keys() - {message for _, message in literal_messages()} == set()


def test_a_message_of_its_own_has_both_languages() -> None:
    error = DaemonError(ErrorCode.NOT_FOUND, Wording("No pen.", "没有笔。"), field="pen")

    assert error.message == "No pen."
    assert error.wording.text(chinese=True) == "没有笔。"
    assert str(error) == "NOT_FOUND: No pen."


@pytest.mark.parametrize("code", list(ErrorCode))
def test_a_message_in_english_alone_never_reaches_a_chinese_client(code: ErrorCode) -> None:
    general = CATALOGUE[code].chinese

    plain = DaemonError(code, "Only English here.")
    named = DaemonError(code, "Only English here.", field="cursorPosition")

    assert plain.wording.chinese == general
    assert named.wording.chinese == f"{general.removesuffix('。')}（cursorPosition）。"


def test_errors_of_the_disk_are_reported_in_both_languages() -> None:
    full = disk_error(OSError(errno.ENOSPC, "full"), "style.md")
    refused = disk_error(OSError(errno.EACCES, "no"), "style.md")

    assert full.wording.chinese == "没有空间写入 style.md；请释放空间后重试。"
    assert refused.wording.chinese == "磁盘拒绝了 style.md（EACCES）。"
