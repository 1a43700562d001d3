"""The unsaved buffer wins over the file; a file is read as it is, and only inside its project."""

import codecs
import os
from pathlib import Path

import anyio
import pytest
from anyio import lowlevel
from hypothesis import given
from hypothesis import strategies as st

from creonowd.clock import SystemClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.retrieval.document_list import is_excluded
from creonowd.rpc.channel import Role
from creonowd.workspace.documents import (
    PIECE,
    Buffer,
    Documents,
    Edit,
    code_points,
    from_utf16,
    to_utf16,
    utf16_length,
)
from creonowd.workspace.projects import Project
from testing.clients import RecordingPeer

NOVEL = "第一章\r\n\r\n　　林远推开门。😀\r\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "novel"
    root.mkdir()
    return Project(project_id="prj_a", name="novel", root=root)


@pytest.fixture
def documents() -> Documents:
    return Documents(SystemClock())


async def refusal(documents: Documents, project: Project, document: str) -> ErrorCode:
    with pytest.raises(DaemonError) as caught:
        await documents.read(project, document)
    assert str(project.root) not in f"{caught.value} {caught.value.details}"
    return caught.value.code


async def test_the_unsaved_buffer_wins_over_the_file(
    documents: Documents, project: Project
) -> None:
    (project.root / "ch1.md").write_text("saved", encoding="utf-8")
    editor, harness = RecordingPeer("editor"), RecordingPeer("harness")
    key = (project.project_id, "ch1.md")

    before = await documents.read(project, "ch1.md", harness)
    await documents.replace(editor, key, 1, "unsaved")
    during = await documents.read(project, "ch1.md", harness)
    editor.hang_up()
    after = await documents.read(project, "ch1.md", harness)

    assert (before.text, during.text, after.text) == ("saved", "unsaved", "saved")


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "gb18030"),
    ],
)
async def test_a_file_is_read_in_its_encoding_with_its_line_ends(
    documents: Documents, project: Project, mark: bytes, encoding: str
) -> None:
    (project.root / "卷一").mkdir()
    (project.root / "卷一" / "第一章.txt").write_bytes(mark + NOVEL.encode(encoding))

    found = await documents.read(project, "卷一/第一章.txt")

    assert found.text == NOVEL
    assert found.length == len(NOVEL)
    assert found.from_utf16(len(NOVEL) + 1) == len(NOVEL)


async def test_an_unchanged_file_is_read_and_decoded_once(
    documents: Documents, project: Project
) -> None:
    path = project.root / "ch1.md"
    path.write_bytes(NOVEL.encode())
    os.utime(path, ns=(10**18, 10**18))

    first = await documents.read(project, "ch1.md")
    second = await documents.read(project, "ch1.md")
    path.write_bytes(b"changed")
    third = await documents.read(project, "ch1.md")

    assert first is second
    assert third.text == "changed"
    assert documents.files.reads == 2


@pytest.mark.parametrize(
    "document",
    [
        "missing.md",
        "../outside.md",
        "..",
        "/etc/passwd",
        "C:\\novel.md",
        "a\0b",
        ".creonow/rules/style.md",
        ".env",
        "ch1.md/x",
        "untitled:1",
        "x" * 2000,
        "",
    ],
)
async def test_an_id_that_is_no_file_of_the_project_is_not_found(
    documents: Documents, project: Project, document: str
) -> None:
    (project.root.parent / "outside.md").write_bytes(b"secret")
    (project.root / ".creonow" / "rules").mkdir(parents=True)
    (project.root / ".creonow" / "rules" / "style.md").write_bytes(b"style")
    (project.root / ".env").write_bytes(b"KEY=1")
    (project.root / "ch1.md").write_bytes(b"one")

    assert await refusal(documents, project, document) is ErrorCode.NOT_FOUND


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_out_of_the_project_leads_nowhere(
    documents: Documents, project: Project
) -> None:
    (project.root.parent / "outside.md").write_bytes(b"secret")
    (project.root / "link.md").symlink_to(project.root.parent / "outside.md")
    (project.root / "folder").symlink_to(project.root.parent)
    (project.root / "loop.md").symlink_to(project.root / "loop.md")

    for document in ("link.md", "folder/outside.md", "loop.md"):
        assert await refusal(documents, project, document) is ErrorCode.NOT_FOUND


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_shows_nothing_that_could_not_be_read_by_its_own_name(
    project: Project,
) -> None:
    documents = Documents(SystemClock(), is_excluded=is_excluded)
    (project.root / ".gitignore").write_text("drafts/\n", encoding="utf-8")
    for hidden in (".env", ".git/config", "drafts/old.md", "cover.svg"):
        place = project.root / hidden
        place.parent.mkdir(exist_ok=True)
        place.write_text("secret", encoding="utf-8")
        (project.root / "link.md").unlink(missing_ok=True)
        (project.root / "link.md").symlink_to(hidden)

        assert await refusal(documents, project, "link.md") is ErrorCode.NOT_FOUND, hidden
    (project.root / "folder").symlink_to("drafts")
    assert await refusal(documents, project, "folder/old.md") is ErrorCode.NOT_FOUND
    (project.root / "one.md").write_text("one", encoding="utf-8")
    (project.root / "two.md").symlink_to("one.md")
    assert (await documents.read(project, "two.md")).text == "one"


async def test_what_is_no_text_is_unsupported(documents: Documents, project: Project) -> None:
    (project.root / "cover.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    (project.root / "folder").mkdir()

    for document in ("cover.png", "folder"):
        assert await refusal(documents, project, document) is ErrorCode.UNSUPPORTED


async def test_a_connection_that_is_already_gone_keeps_nothing(documents: Documents) -> None:
    peer = RecordingPeer()
    peer.hang_up()

    await documents.replace(peer, ("prj_a", "ch1.md"), 1, "late")

    assert len(documents) == 0


async def test_a_buffer_that_was_read_does_not_change_under_its_reader(
    documents: Documents,
) -> None:
    peer, key = RecordingPeer(), ("prj_a", "ch1.md")
    await documents.replace(peer, key, 1, "before")
    read = documents.find(peer, key)

    await documents.edit(peer, key, 1, 2, [Edit(start=0, end=6, text="after")])

    assert read is not None
    assert read.buffer.text == "before"


async def test_no_connection_keeps_more_than_it_may() -> None:
    documents, peer = Documents(SystemClock(), max_open=2, max_code_points=5), RecordingPeer()
    await documents.replace(peer, ("prj_a", "1"), 1, "12345")
    await documents.replace(peer, ("prj_a", "2"), 1, "")

    for document, text in (("3", ""), ("1", "123456")):
        with pytest.raises(DaemonError) as caught:
            await documents.replace(peer, ("prj_a", document), 2, text)
        assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    with pytest.raises(DaemonError):
        await documents.edit(peer, ("prj_a", "1"), 1, 2, [Edit(start=0, end=0, text="0")])

    await documents.replace(peer, ("prj_a", "2"), 2, "ok")
    assert len(documents) == 2


async def test_a_thousand_edits_hold_nobody_up_and_whoever_reads_next_sees_them(
    documents: Documents, project: Project
) -> None:
    peer, key = RecordingPeer(), (project.project_id, "ch1.md")
    await documents.replace(peer, key, 1, "长" * 100_000)
    typed = [Edit(start=0, end=0, text="x")] * 1000
    order: list[str] = []

    async def edit() -> None:
        await documents.edit(peer, key, 1, 2, typed)
        order.append("edited")

    async def read() -> None:
        assert (await documents.read(project, "ch1.md", peer)).text[:1000] == "x" * 1000

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(edit)
            tasks.start_soon(read)
            await lowlevel.checkpoint()
            order.append("went on")

    assert order == ["went on", "edited"]


async def test_pages_have_room_for_so_much_and_owners_for_more() -> None:
    documents = Documents(SystemClock(), max_renderer_bytes=1000)
    page, other = (RecordingPeer(name, role=Role.RENDERER) for name in ("page", "other"))
    owner = RecordingPeer("owner")
    first, second = ("prj_a", "1.md"), ("prj_a", "2.md")
    await documents.replace(page, first, 1, "x" * 600)

    for peer in (page, other):
        with pytest.raises(DaemonError) as caught:
            await documents.replace(peer, second, 1, "x" * 600)
        assert caught.value.code is ErrorCode.IPC_PAYLOAD_TOO_LARGE
    with pytest.raises(DaemonError):
        await documents.edit(page, first, 1, 2, [Edit(start=0, end=0, text="龘" * 300)])
    await documents.replace(owner, second, 1, "x" * 6000)
    await documents.replace(page, first, 2, "x" * 700)
    await documents.close(page, first)
    await documents.replace(other, second, 1, "x" * 600)

    assert len(documents) == 2


snippets = st.text(st.sampled_from("ab林远😀𠮷\r\n。"), max_size=8)
lengths = st.integers(0, 3 * PIECE)

any_place = st.integers(-2, 40) | st.sampled_from([PIECE - 1, PIECE, 2**31, 2**53, -(2**63)])
wild = st.lists(st.tuples(any_place, any_place, st.text("a林😀𠮷\r\n", max_size=6)), max_size=6)

texts = st.text(st.sampled_from("a林é\n\r😀𠮷\ufffd"), max_size=20)


@st.composite
def long_texts(draw: st.DrawFn) -> str:
    """Draw a text that may be longer than a few pieces."""
    return draw(snippets) * draw(st.one_of(st.just(1), lengths))


@st.composite
def places(draw: st.DrawFn) -> int:
    """Draw a place in whatever the text will be then, often next to where two pieces meet."""
    near = st.builds(int.__add__, st.sampled_from([0, PIECE, 2 * PIECE]), st.integers(0, 2))
    return draw(st.one_of(near, st.integers(0, 8 * PIECE)))


plans = st.lists(st.tuples(places(), places(), long_texts()), max_size=12)


@pytest.mark.fuzz
@pytest.mark.parametrize("utf16", [False, True], ids=["code points", "UTF-16"])
@given(text=long_texts(), plan=plans)
def test_edits_equal_their_replay_on_a_plain_string(
    *, utf16: bool, text: str, plan: list[tuple[int, int, str]]
) -> None:
    edits, plain = _replay(text, plan, utf16=utf16)

    at_once = Buffer.of(text).apply(edits, utf16=utf16)
    count_on_demand = Buffer.of(text)
    for edit in edits:
        count_on_demand = count_on_demand.apply([edit], utf16=utf16)

    assert at_once.text == count_on_demand.text == plain
    assert at_once.length == len(plain)
    assert at_once.utf16_length == utf16_length(plain)


def _replay(text: str, plan: list[tuple[int, int, str]], *, utf16: bool) -> tuple[list[Edit], str]:
    edits: list[Edit] = []
    for one, other, new in plan:
        start, end = sorted((one % (len(text) + 1), other % (len(text) + 1)))
        units = to_utf16(text, (start, end)) if utf16 else {start: start, end: end}
        ends = (units[start], units[end])
        edits.append(Edit(start=ends[0], end=ends[1], text=new))
        text = text[:start] + new + text[end:]
    return edits, text


@given(text=long_texts(), share=st.floats(0, 1))
def test_a_position_in_a_buffer_is_that_in_its_text(text: str, share: float) -> None:
    position = round(share * len(text))

    assert Buffer.of(text).from_utf16(to_utf16(text, [position])[position]) == position


@pytest.mark.parametrize(
    ("start", "end", "utf16"),
    [(0, 7, True), (0, 5, False), (-1, 0, False), (3, 2, False), (3, 3, True), (0, 5, True)],
    ids=["past UTF-16", "past", "negative", "inverted", "inside a pair", "to inside a pair"],
)
def test_an_edit_that_does_not_fit_is_refused(*, start: int, end: int, utf16: bool) -> None:
    buffer = Buffer.of("ab😀😀")
    fits = Edit(start=0, end=0, text="")

    with pytest.raises(DaemonError) as caught:
        buffer.apply([fits, Edit(start=start, end=end, text="x")], utf16=utf16)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert buffer.text == "ab😀😀"


def test_an_edit_leaves_the_buffer_it_came_from_as_it_was() -> None:
    before = Buffer.of("林远" * 10_000)

    after = before.apply([Edit(start=5, end=7, text="走")])

    assert before.text == "林远" * 10_000
    assert after.length == before.length - 1


def test_typing_and_deleting_do_not_crumble_the_text() -> None:
    buffer = Buffer.of("林" * 100_000)

    typed = buffer.apply([Edit(start=50_000, end=50_000, text="走")] * 20_000)
    thinned = typed.apply([Edit(start=number, end=number + 100, text="") for number in range(900)])

    assert typed.text == "林" * 50_000 + "走" * 20_000 + "林" * 50_000
    assert typed.pieces < 100
    assert thinned.length == 120_000 - 90_000
    assert thinned.pieces < 60


@pytest.mark.fuzz
@pytest.mark.parametrize("utf16", [False, True], ids=["code points", "UTF-16"])
@given(text=st.text("ab林😀𠮷\r\n", max_size=30), plan=wild)
def test_edits_anywhere_fit_or_change_nothing(
    *, utf16: bool, text: str, plan: list[tuple[int, int, str]]
) -> None:
    """The model is plain: cut the bytes of the encoding, and see whether a text is left."""
    buffer = Buffer.of(text)
    edits = [Edit(start=start, end=end, text=new) for start, end, new in plan]
    expected = _cut_by_bytes(text, edits, "utf-16-le" if utf16 else "utf-32-le")

    try:
        edited = buffer.apply(edits, utf16=utf16).text
    except DaemonError as error:
        edited = None if error.code is ErrorCode.INVALID_ARGUMENT else error.code

    assert edited == expected
    assert buffer.text == text


def _cut_by_bytes(text: str, edits: list[Edit], encoding: str) -> str | None:
    """Give the edited text; None if an edit lies outside of it, runs backwards or tears a pair."""
    width = 2 if encoding == "utf-16-le" else 4
    data = text.encode(encoding)
    for edit in edits:
        start, end = edit.start * width, edit.end * width
        if not 0 <= start <= end <= len(data):
            return None
        try:
            data[:start].decode(encoding)
            data[:end].decode(encoding)
        except UnicodeDecodeError:
            return None
        data = data[:start] + edit.text.encode(encoding) + data[end:]
    return data.decode(encoding)


@given(texts, st.data())
def test_a_position_survives_the_way_there_and_back(text: str, data: st.DataObject) -> None:
    position = data.draw(st.integers(0, len(text)))

    assert from_utf16(text, to_utf16(text, [position])[position]) == position


@given(texts)
def test_positions_converted_at_once_equal_those_converted_alone(text: str) -> None:
    positions = range(len(text) + 1)

    assert to_utf16(text, positions) == {p: utf16_length(text[:p]) for p in positions}


@given(texts)
def test_every_unit_is_a_position_or_lies_inside_a_pair(text: str) -> None:
    units = range(utf16_length(text) + 1)

    found = [code_points(text, unit) for unit in units]

    pairs = sum(character > "\uffff" for character in text)
    assert [position for position in found if position is not None] == list(range(len(text) + 1))
    assert found.count(None) == pairs


def test_a_position_inside_a_pair_is_refused() -> None:
    with pytest.raises(DaemonError) as caught:
        from_utf16("a😀b", 2)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT


@pytest.mark.parametrize("position", [-1, 5])
def test_a_position_outside_the_text_is_refused(position: int) -> None:
    with pytest.raises(DaemonError) as caught:
        from_utf16("a😀b", position)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details == {"position": position, "length": 4}
