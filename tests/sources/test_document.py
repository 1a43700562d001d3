"""The document of a request: found, clamped, or degraded; positions in both encodings."""

from pathlib import Path

import anyio
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.clock import SystemClock
from creonowd.context.fragment import Reason, Span, show
from creonowd.context.plan import Document
from creonowd.context.source import SourceQuery
from creonowd.errors import Language
from creonowd.sources.document import (
    HEADINGS_SHOWN,
    HeadingsSource,
    LocatedDocument,
    Position,
    RecentRunsSource,
    accepted_summary,
    open_document,
    outline,
    place_in,
)
from creonowd.workspace.documents import Buffer, Documents
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import RunRecord, Runs, RunStatus, RunSummary
from testing.clients import RecordingPeer
from testing.sources import result_of

NOVEL = "# 红楼\n序。\n\n## 第一回 甄士隐\n正文。\n\n## 第二回 贾夫人\n正文。\n\n### 葬花\n正文。\n"

RUN = RunRecord(
    run_id="run_1",
    skill_id="builtin:continue",
    at_ms=1,
    provider="fake",
    model="m",
    prompt_hash="a",
    stable_prefix_hash="b",
    token_count=1,
    summary="",
)


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
    assert show(found.warnings, Language.CHINESE).warnings == [
        "IMMEDIATE_UNAVAILABLE: ch.md：文档未打开且不在磁盘上。"
    ]


async def test_a_file_that_is_no_text_is_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "ch.md").write_bytes(b"\x00\x01\x02PNG\xff\xfe")

    found = await opened(tmp_path, Documents(SystemClock()))

    assert found.document is None
    assert show(found.warnings, Language.CHINESE).warnings == [
        "IMMEDIATE_UNAVAILABLE: ch.md：不是文本文件。"
    ]
    assert [(one.source_ref, one.reason) for one in found.left_out] == [
        ("ch.md", Reason.INVALID_FORMAT)
    ]


def test_a_place_past_the_end_is_clamped_with_a_warning() -> None:
    found = place_in(Buffer.of("雨停了"), at(99, Span(1, 50)), utf16=False)

    assert found.document is not None
    assert found.document.cursor == 3
    assert found.document.selection == Span(1, 3)
    assert show(found.warnings).warnings == ["CONTEXT_CURSOR_CLAMPED"]


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


def document_at(text: str, cursor: int) -> Document:
    return Document(source_ref="章/一.md", text=text, cursor=cursor)


def test_the_heading_above_the_cursor_is_marked() -> None:
    assert outline(document_at(NOVEL, NOVEL.index("贾夫人") + 8)) == (
        "- 红楼\n  - 第一回 甄士隐\n  → 第二回 贾夫人\n    - 葬花"
    )


def test_before_the_first_heading_nothing_is_marked() -> None:
    assert outline(document_at("引子\n# 一\n# 二\n", 1)) == "- 一\n- 二"


def test_chapters_of_plain_text_are_headings() -> None:
    text = "第一回 甄士隐梦幻\r\n\r\n正文。\r\n第二回 贾夫人\r\n正文。\r\n"

    assert outline(document_at(text, len(text))) == "- 第一回 甄士隐梦幻\n→ 第二回 贾夫人"


def test_a_comment_in_code_is_no_heading() -> None:
    text = "# 一\n```\n# no heading\n```\n# 二\n"

    assert outline(document_at(text, len(text))) == "- 一\n→ 二"


@pytest.mark.parametrize(
    "text", ["第二天早晨，他走了很远的路。\n", "# 第一章 雨夜\n\n雨下了。\n", ""]
)
def test_a_text_of_one_chapter_has_no_outline(text: str) -> None:
    assert outline(document_at(text, 0)) == ""


async def test_a_document_that_the_prompt_shows_as_a_whole_needs_no_outline() -> None:
    ask = SourceQuery(project_id="p", skill_id="s", limit=9, document=document_at(NOVEL, 0))

    whole = await result_of(HeadingsSource(), msgspec.structs.replace(ask, shown=len(NOVEL)))
    part = await result_of(HeadingsSource(), msgspec.structs.replace(ask, shown=len(NOVEL) - 1))

    assert whole.fragments == ()
    assert len(part.fragments) == 1


def test_of_a_long_novel_only_what_is_near_is_shown() -> None:
    text = "".join(f"# 第{n}章\n正文\n" for n in range(500))

    lines = outline(document_at(text, text.index("第250章"))).split("\n")

    assert len(lines) == 2 * HEADINGS_SHOWN + 1
    assert lines[HEADINGS_SHOWN] == "→ 第250章"


def test_a_selection_counts_from_its_beginning() -> None:
    selection = Span(NOVEL.index("贾夫人"), len(NOVEL))

    shown = outline(Document(source_ref="a.md", text=NOVEL, cursor=0, selection=selection))

    assert "→ 第二回 贾夫人" in shown


@pytest.mark.requirement("SK-013")
async def test_the_source_says_where_it_comes_from() -> None:
    ask = SourceQuery(project_id="p", skill_id="s", limit=9, document=document_at(NOVEL, 0))

    (fragment,) = (await result_of(HeadingsSource(), ask)).fragments
    nothing = await result_of(HeadingsSource(), SourceQuery(project_id="p", skill_id="s", limit=9))

    assert fragment.source_ref == "章/一.md#outline"
    assert fragment.score == 1.0
    assert nothing.fragments == ()


@given(st.text(alphabet="# \n第一章回`~\r\u3000abc", max_size=300), st.integers(0, 300))
def test_at_most_one_heading_is_marked(text: str, cursor: int) -> None:
    shown = outline(document_at(text, min(cursor, len(text))))

    assert sum(line.lstrip().startswith("→ ") for line in shown.split("\n")) <= 1


def ask(count: int, document_id: str | None = "a.md") -> SourceQuery:
    return SourceQuery(
        project_id="prj_1",
        skill_id="s",
        limit=200,
        document_id=document_id,
        recent_summary=count,
    )


async def recorded(user_data: Path, count: int) -> RecentRunsSource:
    runs = Runs(user_data)
    for number in range(count):
        summary = RunSummary(skill_name="续写", excerpt=f"第{number}次", characters=3)
        await runs.record(
            "prj_1", "a.md", msgspec.structs.replace(RUN, run_id=f"r{number}", summary=summary)
        )
        await runs.decide("prj_1", f"r{number}", RunStatus.ACCEPTED, number)
    return RecentRunsSource(runs)


@pytest.mark.requirement("SK-034")
async def test_the_last_runs_are_given_oldest_first(tmp_path: Path) -> None:
    source = await recorded(tmp_path, 5)

    fetched = await result_of(source, ask(3))

    assert [fragment.text for fragment in fetched.fragments] == [
        f"技能：续写\n已采纳（3 字）：第{number}次" for number in (2, 3, 4)
    ]
    assert [fragment.source_ref for fragment in fetched.fragments] == ["runs/3", "runs/4", "runs/5"]
    assert {fragment.score for fragment in fetched.fragments} == {1.0}


async def test_a_run_that_was_not_accepted_is_not_given(tmp_path: Path) -> None:
    runs = Runs(tmp_path)
    for name in ("pending", "accepted", "discarded"):
        await runs.record("prj_1", "a.md", msgspec.structs.replace(RUN, run_id=name, summary=name))
    await runs.decide("prj_1", "accepted", RunStatus.ACCEPTED, 1)
    await runs.decide("prj_1", "discarded", RunStatus.DISCARDED, 1)

    fetched = await result_of(RecentRunsSource(runs), ask(10))

    assert [fragment.text for fragment in fetched.fragments] == ["accepted\n已采纳"]
    assert [fragment.source_ref for fragment in fetched.fragments] == ["runs/2"]


async def test_the_summary_names_the_instruction_and_what_was_accepted() -> None:
    summary = RunSummary(
        skill_name="续写", instruction="更紧张些", excerpt="林远推门。", characters=5
    )
    asked = msgspec.structs.replace(RUN, summary=summary)
    empty = msgspec.structs.replace(RUN, summary=RunSummary(skill_name="续写", characters=1))

    assert accepted_summary(asked) == "技能：续写\n指令：更紧张些\n已采纳（5 字）：林远推门。"
    assert accepted_summary(empty) == "技能：续写\n已采纳：无"


async def test_nothing_is_given_that_was_not_asked_for(tmp_path: Path) -> None:
    source = await recorded(tmp_path, 2)

    assert (await result_of(source, ask(0))).fragments == ()
    assert (await result_of(source, ask(3, "b.md"))).fragments == ()
    assert (await result_of(source, ask(3, None))).fragments == ()
    assert len((await result_of(source, ask(10))).fragments) == 2
