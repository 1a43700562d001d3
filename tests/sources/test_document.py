"""The document of a request: found, clamped, or degraded; positions in both encodings."""

from pathlib import Path

import anyio

from creonowd.clock import SystemClock
from creonowd.context.fragment import Reason, Span
from creonowd.sources.document import LocatedDocument, Position, open_document, place_in
from creonowd.workspace.buffer import Buffer
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project
from testing.clients import RecordingPeer


def at(cursor: int, selection: Span | None = None) -> Position:
    return Position(document_id="ch.md", cursor=cursor, selection=selection)


async def opened(root: Path, documents: Documents, cursor: int = 0) -> LocatedDocument:
    project = Project(project_id="prj", name="x", root=root)
    with anyio.fail_after(60):
        return await open_document(documents, project, at(cursor), RecordingPeer(), 2000)


async def test_the_editor_wins_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "ch.md").write_text("旧", encoding="utf-8")
    documents = Documents(SystemClock())
    await documents.replace(RecordingPeer(), ("prj", "ch.md"), 1, "新")

    found = await opened(tmp_path, documents)

    assert found.document is not None
    assert found.document.text == "新"


async def test_without_an_editor_it_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "ch.md").write_bytes("第一章\r\n雨".encode())

    found = await opened(tmp_path, Documents(SystemClock()), 6)

    assert found.document is not None
    assert (found.document.text, found.document.cursor) == ("第一章\r\n雨", 6)


async def test_a_document_that_is_nowhere_degrades(tmp_path: Path) -> None:
    found = await opened(tmp_path, Documents(SystemClock()))

    assert found.document is None
    assert found.warnings == ("IMMEDIATE_UNAVAILABLE: 文档未打开且不在磁盘上。",)


async def test_a_file_that_is_no_text_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "ch.md").write_bytes(b"\x00\x01\x02PNG\xff\xfe")

    found = await opened(tmp_path, Documents(SystemClock()))

    assert found.document is None
    assert found.warnings == ("IMMEDIATE_UNAVAILABLE: 文档无法读取（UNSUPPORTED）。",)
    assert [(one.source_ref, one.reason) for one in found.left_out] == [
        ("ch.md", Reason.INVALID_FORMAT)
    ]


def test_a_place_past_the_end_is_clamped_with_a_warning() -> None:
    found = place_in(Buffer.of("雨停了"), at(99, Span(1, 50)), utf16=False)

    assert found.document is not None
    assert found.document.cursor == 3
    assert found.document.selection == Span(1, 3)
    assert found.warnings == ("CONTEXT_CURSOR_CLAMPED",)


def test_positions_of_javascript_count_utf16_units() -> None:
    buffer = Buffer.of("😀雨😀停")

    found = place_in(buffer, at(3, Span(2, 5)), utf16=True)

    assert found.document is not None
    assert found.document.cursor == 2
    assert found.document.selection == Span(1, 3)
    past = place_in(buffer, at(100), utf16=True).document
    assert past is not None
    assert past.cursor == 4


def test_a_cursor_inside_a_surrogate_pair_stands_before_it() -> None:
    found = place_in(Buffer.of("😀雨"), at(1), utf16=True)

    assert found.document is not None
    assert found.document.cursor == 0


def test_an_empty_selection_is_none() -> None:
    found = place_in(Buffer.of("雨停了"), at(1, Span(2, 2)), utf16=False)

    assert found.document is not None
    assert found.document.selection is None
