"""The story is read from disk and from the editor, and what has not changed is not read again."""

import gc
import weakref
from pathlib import Path

import pytest

from creonowd.clock import SystemClock
from creonowd.context.plan import place
from creonowd.context.story import DoubtKind, Story, StoryHeading
from creonowd.sources.synopsis import STORY_FILE, Chapters, read_story
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project


def write(root: Path, path: str, text: str | bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(text if isinstance(text, bytes) else text.encode())


def paths(story: Story) -> list[str]:
    return [document.path for document in story.documents]


@pytest.fixture
def chapters() -> Chapters:
    clock = SystemClock()
    return Chapters(Documents(clock), clock)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(project_id="prj_0000000000000000", name="石头记", root=tmp_path)


def test_order_length_and_headings_come_from_the_files(tmp_path: Path) -> None:
    write(tmp_path, "第十章.md", "十")
    write(tmp_path, "第二章.md", "---\ntitle: x\n---\n\n# 第二章\r\n\r\n雪😀\r\n## 夜\r\n")
    write(tmp_path, "插曲.md", "---\norder: 5\n---\n雨")

    story = read_story(tmp_path)

    assert paths(story) == ["第二章.md", "插曲.md", "第十章.md"]
    assert story.documents[0].length == len("# 第二章\r\n\r\n雪😀\r\n## 夜\r\n")
    assert story.documents[0].headings == (StoryHeading("第二章", 0), StoryHeading("夜", 13))


def test_the_story_file_decides(tmp_path: Path) -> None:
    for name in ("1", "2"):
        write(tmp_path, f"{name}.md", name)
    write(tmp_path, STORY_FILE, b'\xef\xbb\xbf{"version": 1, "order": ["2.md", "1.md"]}')

    assert paths(read_story(tmp_path)) == ["2.md", "1.md"]


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b'{"version": 2, "order": []}',
        b'{"version": 1, "order": "1.md"}',
        b'{"version": 1, "order": [1]}',
        b"\xff\xfe",
        b'{"order": ' + b"[" * 100_000,
    ],
)
def test_a_story_file_that_makes_no_sense_leaves_the_order_to_names(
    tmp_path: Path, data: bytes
) -> None:
    write(tmp_path, "2.md", "2")
    write(tmp_path, "1.md", "1")
    write(tmp_path, STORY_FILE, data)

    story = read_story(tmp_path)

    assert paths(story) == ["1.md", "2.md"]
    assert [doubt.kind for doubt in story.doubts] == [DoubtKind.INVALID_FILE]


def test_a_document_that_is_no_text_keeps_its_place(tmp_path: Path) -> None:
    write(tmp_path, "1.md", "1")
    write(tmp_path, "2.md", b"\x00\x01\x02\x03")
    write(tmp_path, "3.md", "3")

    story = read_story(tmp_path)

    assert [document.length for document in story.documents] == [1, None, 1]
    previous = story.previous("3.md")
    assert previous is not None
    assert previous.path == "1.md"


async def test_what_the_caller_has_open_counts(chapters: Chapters, project: Project) -> None:
    write(project.root, "1.md", "---\norder: 9\n---\nold")
    write(project.root, "2.md", "2")
    current = place("1.md", "# 第一章\n\nnew", 0).document
    new = place("0.md", "not saved yet", 0).document

    with_current = await chapters.story(project, current)
    with_new = await chapters.story(project, new)

    assert paths(with_current) == ["1.md", "2.md"]
    assert with_current.documents[0].headings == (StoryHeading("第一章", 0),)
    assert paths(with_new) == ["0.md", "2.md", "1.md"]


async def test_nothing_changed_is_the_very_same_story(chapters: Chapters, project: Project) -> None:
    write(project.root, "1.md", "1")

    first = await chapters.story(project)
    again = await chapters.story(project)
    write(project.root, "0.md", "0")
    changed = await chapters.story(project)

    assert first is again
    assert paths(changed) == ["0.md", "1.md"]


def test_a_story_that_is_typed_is_the_one_that_is_read_from_disk(
    chapters: Chapters, project: Project
) -> None:
    """While only texts change the order is kept, and nobody can see that from the story."""
    for number in range(1, 5):
        write(project.root, f"第{number}章.md", f"# 第{number}章\n\n雨")
    write(project.root, "设定/人物.md", "她")
    write(project.root, STORY_FILE, '{"version": 1, "order": ["第3章.md", "nobody.md"]}')
    path = "第2章.md"
    typed = [
        "# 第2章\n\n雨停",
        "# 第2章\n\n雨停了\n\n# 尾声\n",
        "---\norder: 9\n---\n# 第2章\n\n雨停了。",
        "---\norder: 9\n---\n# 第2章\n\n雨停了。天",
        "---\norder: outside\n---\n# 第2章\n",
        "---\norder: [1]\n---\n# 第2章\n",
        "# 第2章\n\n雨又来了。\n\n# 尾声\n",
        "",
    ]

    for text in typed:
        story = chapters.read_now(project, {path: text, "设定/人物.md": f"她{text}"})
        write(project.root, path, text)
        write(project.root, "设定/人物.md", f"她{text}")
        saved = read_story(project.root)

        assert story.documents == saved.documents
        assert story.outside == saved.outside
        assert story.doubts == saved.doubts
        assert story.find("尾声") == saved.find("尾声")


def test_the_story_of_a_project_that_was_removed_is_not_kept(
    chapters: Chapters, project: Project
) -> None:
    write(project.root, "一.md", "雪")
    before = weakref.ref(chapters.read_now(project, {}))

    chapters.forget(project.root)
    gc.collect()

    assert before() is None


async def test_an_empty_project_has_an_empty_story(chapters: Chapters, project: Project) -> None:
    story = await chapters.story(project)

    assert (story.documents, story.outside, story.doubts) == ((), (), ())
