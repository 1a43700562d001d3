"""A document can be redacted segment by segment: no secret is cut in two, whatever surrounds it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.manuscript import Manuscript
from creonowd.redaction.split_points import split_points
from tests.context.worlds import REDACTOR, SECRET, SENTENCES, text_tools
from tests.tokens.vocabulary import PIECES

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(
        "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun"[i:] for i in range(12)
    )
    + "\n-----END RSA PRIVATE KEY-----"
)
PGP = (
    "-----BEGIN PGP PRIVATE KEY BLOCK-----\nComment: 我的钥匙。\nVersion: made by hand.\n\n"
    + "\n".join(
        "lQOYBGVkY3kBCADO9q0sXnqcV1wPkD7uT3rE5yHhJ2mZb8gQaLfRtUoWnMxKsCeI"[i:] for i in range(12)
    )
    + "\n-----END PGP PRIVATE KEY BLOCK-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
LINES = (
    *SENTENCES,
    PEM,
    PGP,
    PGP.partition("\n\n")[0],
    f"token: {JWT}",
    "password = hunter2!Xy9",
    "密码：\nQm3kP9xW2z",
    "打开 /home/alice/novel/草稿.md 看看。",
    "C:\\Users\\alice\\novel\\draft.md",
    f'{{"apiKey": "{SECRET}"}}',
    "",
    "#",
    *PIECES,
)
manuscripts = st.tuples(
    st.lists(st.sampled_from(LINES), max_size=60), st.sampled_from(("\n", "\r\n", "\n\n"))
).map(lambda drawn: drawn[1].join(drawn[0]))


@given(text=manuscripts, data=st.data())
def test_segments_redact_as_the_whole_does(text: str, data: st.DataObject) -> None:
    opened = data.draw(st.integers(0, len(text)))

    read = Manuscript(text, opened, text_tools()).read_span(0, len(text))

    assert read == REDACTOR.redact(text.replace("\r\n", "\n")).text


@given(text=manuscripts, data=st.data())
def test_no_span_of_a_document_shows_half_a_secret(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))

    read = Manuscript(text, start, text_tools()).read_span(start, end)

    whole = REDACTOR.redact(text.replace("\r\n", "\n")).text
    assert read in whole
    assert "hunter2" not in read
    assert SECRET[3:12] not in read


@given(text=manuscripts, data=st.data())
def test_edges_do_not_depend_on_where_one_looks(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))

    found = split_points(text, start, end)

    assert found == [edge for edge in split_points(text, 0, len(text)) if start < edge.at < end]


def test_a_document_without_sentences_is_split_on_a_grid() -> None:
    text = "他走了，她没有回头，雨还在下，" * 4000 + SECRET + "，于是他又回来了，" * 4000

    found = split_points(text, 0, len(text))
    read = Manuscript(text, 60_010, text_tools()).read_span(0, len(text))

    assert len(found) > 5
    assert all(edge.may_cut_secret for edge in found)
    assert read == REDACTOR.redact(text).text


@pytest.mark.parametrize("ends", ["。", "!", "see x."])
def test_a_private_key_stays_out_whatever_its_comments_end_in(ends: str) -> None:
    """Lines of a key that end as sentences do are no place to take a document apart."""
    body = PGP.partition("\n\n")[2]
    head = "-----BEGIN PGP PRIVATE KEY BLOCK-----\n"
    comments = "".join(f"Comment: {c}{ends}\n" for c in "abcdefghijklmnopqrstuvwxyz甲乙丙丁")
    text = f"他走了。\n{head}{comments}\n{body}\n她来了。"

    read = Manuscript(text, len(text) - 2, text_tools()).read_span(0, len(text))

    assert read == "他走了。\n***REDACTED***\n她来了。"


def test_a_very_long_private_key_stays_out() -> None:
    body = f"{PGP.splitlines()[4]}\n" * 500
    head, end = PGP.partition("\n\n")[0], PGP.splitlines()[-1]
    text = f"他走了。\n{head}\n\n{body}{end}\n她来了。"

    read = Manuscript(text, len(text) // 2, text_tools()).read_span(0, len(text))

    assert read == "他走了。\n***REDACTED***\n她来了。"
