"""What holds for every text: once is enough, no planted secret survives, and work stays linear."""

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.redaction import PLACEHOLDER, Redactor, redact
from creonowd.redaction.rulebook import RULES
from tests.redaction.made_up import made_up
from tests.redaction.test_tokens import EXAMPLES

PIECES = (
    "sk-", made_up("sk-{A20}"), made_up("AKIA{U16}"), made_up("ghp_{A36}"), "password", "=", ": ",
    "：", "密码", "是", "/home/lisi", "/x", "C:\\", "\\", "Users\\", "li ", ".md", " ", "\n", '"', "'",
    PLACEHOLDER, "***", "REDACTED", "eyJhbGciOiJIUzI1NiJ9", ".", "eyJzdWIiOiIx", "://", "@", "user:",
    "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", made_up("{B40}"), "token", "key",
    "Bearer ", "Authorization", "cookie: ", "session=", made_up("{A9}"), "，", "。", "a", "1", "-", "_",
    "\\n", "\\u94a5", "\u200b", "%3D", "file:///", "\\\\srv\\share", "&", "?", "--", made_up("{H32}"),
    made_up("{D8}"), " -p", " -u", "mysql", "<", ">", "|", "(", ")", "é", "Ｓ", "ｋ", "－", "+",
)  # fmt: skip
MOSAICS = st.lists(st.sampled_from(PIECES), max_size=16).map("".join)
PROSE = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])
    | st.sampled_from("，。！？“”、 \n的了是"),
    max_size=40,
)
SECRETS = st.sampled_from(
    [made_up(template, seed) for _, template in EXAMPLES for seed in range(3)]
)


def in_chinese(secret: str, before: str, after: str) -> str:
    return f"{before}他把{secret}贴进了聊天框，{after}"


def in_english(secret: str, before: str, after: str) -> str:
    return f"{before} and then {secret}, {after}"


def in_json(secret: str, before: str, after: str) -> str:
    return json.dumps({"note": f"{before}\n{secret}\n{after}", "list": [before, {"x": secret}]})


def in_yaml(secret: str, before: str, after: str) -> str:
    note = json.dumps(before, ensure_ascii=False)
    return f"note: {note}\nprovider:\n  thing: {secret}\n  other: {json.dumps(after)}\n"


def in_markdown(secret: str, before: str, after: str) -> str:
    return (
        f"# {before}\n\n- **{secret}** `{secret}`\n\n```\n{secret}\n```\n\n| {after} | {secret} |\n"
    )


@given(MOSAICS | st.text())
def test_redacting_again_changes_nothing(text: str) -> None:
    once = redact(text)

    again = redact(once.text)

    assert again == (once.text, ())


@given(MOSAICS)
def test_redacting_again_changes_nothing_in_sensitive_mode(text: str) -> None:
    wider = Redactor(None, [made_up("{A9}")], sensitive=True)
    once = wider.redact(text)

    assert wider.redact(once.text) == (once.text, ())


@pytest.mark.parametrize("place", [in_chinese, in_english, in_json, in_yaml, in_markdown])
@given(data=st.data())
def test_no_planted_secret_survives(
    place: Callable[[str, str, str], str], data: st.DataObject
) -> None:
    secret = data.draw(SECRETS)
    text = place(secret, data.draw(PROSE), data.draw(PROSE))

    redacted, evidence = redact(text, "chapter.md")

    assert secret not in redacted
    assert secret not in repr(evidence)


@given(PROSE.filter(str.strip), PROSE)
def test_what_stands_beside_a_secret_stays(before: str, after: str) -> None:
    plain = f"{before}\n\n{after}"
    secret = made_up("ghp_{A36}")

    redacted = redact(f"{before}\n{secret}\n{after}").text

    if redact(plain).text == plain:
        assert redacted == f"{before}\n{PLACEHOLDER}\n{after}"


@given(MOSAICS, st.integers(0, 60))
def test_a_secret_hidden_by_invisible_characters_is_found(text: str, place: int) -> None:
    secret = made_up("sk-{A48}")
    cut = place % len(secret)
    hidden = f"{secret[:cut]}\u200b{secret[cut:]}"

    redacted = redact(f"{text}\n{hidden}\n").text

    assert secret[3:cut] not in redacted or cut < 12
    assert secret[max(3, cut) :] not in redacted or cut > len(secret) - 8


HOSTILE = (
    "eyJ", "-eyJ", "eyJ.", "eyJaaaaaaaa.", "password=", "password: ", "密码：", "密码是", "/home/a ",
    "/home/", "/home/!", "C:\\a\\", "C:\\", "C:/", "://a:b", "\\\\aa\\bb", "-----BEGIN PRIVATE KEY-----",
    "sk-", "sk-a", "key=", "cookie: a=b;", "authorization: ", "bearer a ", "\\u94a5", "a\u200b", ".aaaaaa.",
    "'/home/", '"C:\\a b', " -u a:", "mysql -p a ", "file:///a ", "C:\\a b c d e ", "/Users/A B C D E ",
    "password=a.b.", "密码（", "<password>", "sk-sk-", "a:b@tcp(", "basic aaaaaaaaaaaa", "signature=",
    made_up("sk-{A20} "), made_up("password={A9}\n"), "/home/lisi/x.md ", "ｓｋ－", '" + "a',
)  # fmt: skip


def calls(work: Callable[[], Any]) -> int:
    """Count the calls into Python and C code, a measure that no slow machine disturbs."""
    count = 0

    def counting(_frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counting)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("piece", HOSTILE)
def test_twice_the_text_is_not_four_times_the_work(piece: str) -> None:
    """A straight line may begin late, where a longest path ends; a square would show."""
    short = piece * (12_000 // len(piece))
    redact(short)

    once, twice = calls(lambda: redact(short)), calls(lambda: redact(short + short))

    assert twice <= 3 * once


@pytest.mark.parametrize("anchor", sorted({anchor for rule in RULES for anchor in rule.anchors}))
def test_a_text_of_nothing_but_anchors_is_redacted_in_good_time(anchor: str) -> None:
    """There is no clock here: were any rule quadratic, this file alone would take hours."""
    text = (anchor + "a1") * (20_000 // len(anchor))

    redacted = redact(text).text

    assert redact(redacted).text == redacted
