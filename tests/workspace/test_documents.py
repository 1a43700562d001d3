"""The unsaved buffer wins over the file; a file is read as it is, and only inside its project."""

import codecs
import os
from pathlib import Path

import anyio
import pytest
from anyio import lowlevel

from creonowd.clock import SystemClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.rpc.channel import Role
from creonowd.workspace.buffer import Edit
from creonowd.workspace.documents import Documents
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
