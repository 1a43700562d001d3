"""A document can be redacted leaf by leaf: no secret is cut in two, whatever surrounds it."""

from hypothesis import given
from hypothesis import strategies as st

from creonowd.context.manuscript import Manuscript
from creonowd.context.seams import edges
from tests.context.worlds import REDACTOR, SECRET, SENTENCES, instruments
from tests.tokens.vocabulary import PIECES

PEM = (
    "-----BEGIN RSA PRIVATE KEY-----\n"
    + "\n".join(
        "MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun"[i:] for i in range(12)
    )
    + "\n-----END RSA PRIVATE KEY-----"
)
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
LINES = (
    *SENTENCES,
    PEM,
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
def test_leaves_redact_as_the_whole_does(text: str, data: st.DataObject) -> None:
    opened = data.draw(st.integers(0, len(text)))

    read = Manuscript(text, opened, instruments()).between(0, len(text))

    assert read == REDACTOR.redact(text.replace("\r\n", "\n")).text


@given(text=manuscripts, data=st.data())
def test_no_stretch_of_a_document_shows_half_a_secret(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))

    read = Manuscript(text, start, instruments()).between(start, end)

    whole = REDACTOR.redact(text.replace("\r\n", "\n")).text
    assert read in whole
    assert "hunter2" not in read
    assert SECRET[3:12] not in read


@given(text=manuscripts, data=st.data())
def test_edges_do_not_depend_on_where_one_looks(text: str, data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))

    found = edges(text, start, end)

    assert found == [edge for edge in edges(text, 0, len(text)) if start < edge.at < end]


def test_a_document_without_seams_is_torn_on_a_grid() -> None:
    text = "他走了，她没有回头，雨还在下，" * 4000 + SECRET + "，于是他又回来了，" * 4000

    found = edges(text, 0, len(text))
    read = Manuscript(text, 60_010, instruments()).between(0, len(text))

    assert len(found) > 5
    assert all(edge.torn for edge in found)
    assert read == REDACTOR.redact(text).text
