"""Extracts of chapters are kept in user data, and only those that may be."""

from hashlib import sha256
from pathlib import Path

import pytest

from creonowd.clock import SystemClock
from creonowd.context.story import StoryDocument
from creonowd.redaction import Redactor
from creonowd.sources import chapter_summaries as extracts
from creonowd.sources.chapter_summaries import (
    FOLDER,
    ChapterSummary,
    Extract,
    ExtractStore,
    SummaryStore,
    extract,
)
from creonowd.sources.synopsis import ChapterSummaries, read_document
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.documents import Documents
from creonowd.workspace.projects import Project
from testing.novels import SECRET

PROJECT = "prj_0000000000000000"
NAMES = (("林远", "阿远"),)
CHAPTER = "# 第一章 渡口\n\n林远在渡口等了一夜，江上没有一条船。天亮时他终于看见了灯火。\n"
MADE = Extract("（摘录）渡口。", "渡口。")


def store(user_data: Path) -> ExtractStore:
    return ExtractStore(user_data, Redactor())


def kept_in(user_data: Path) -> Path:
    return user_data / FOLDER / f"{PROJECT}.json"


def summarise(root: Path, kept: ExtractStore, text: str = CHAPTER) -> ChapterSummary | None:
    clock = SystemClock()
    summaries = ChapterSummaries(SummaryStore(Tree(clock), clock), Documents(clock), kept)
    project = Project(project_id=PROJECT, name="石头记", root=root)
    return summaries.extract(project, read_document("一.md", text), {}, NAMES)


def test_an_extract_is_there_after_a_restart_without_its_chapter(tmp_path: Path) -> None:
    (tmp_path / "一.md").write_text(CHAPTER, "utf-8")
    before = store(tmp_path)
    made = summarise(tmp_path, before)
    before.save()
    (tmp_path / "一.md").unlink()

    assert made is not None
    assert summarise(tmp_path, store(tmp_path)) == made


@pytest.mark.parametrize(
    ("names", "digest"), [((("林远",),), "d"), (NAMES, "another")], ids=["names", "text"]
)
def test_other_names_or_another_text_have_another_extract(
    tmp_path: Path, names: extracts.CharacterNames, digest: str
) -> None:
    before = store(tmp_path)
    before.add(PROJECT, NAMES, "d", CHAPTER, MADE)
    before.save()

    assert store(tmp_path).get(PROJECT, NAMES, "d") == MADE
    assert store(tmp_path).get(PROJECT, names, digest) is None


@pytest.mark.parametrize("body", [f"{CHAPTER}password: {SECRET}\n", "雪\ud800"])
def test_a_chapter_with_a_secret_or_half_a_character_is_not_kept(tmp_path: Path, body: str) -> None:
    before = store(tmp_path)
    before.add(PROJECT, NAMES, "d", body, Extract(body, body))
    before.save()

    assert not kept_in(tmp_path).exists()


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"version":99}', b'{"version":0}'])
def test_a_file_that_makes_no_sense_is_replaced(tmp_path: Path, data: bytes) -> None:
    kept_in(tmp_path).parent.mkdir()
    kept_in(tmp_path).write_bytes(data)
    after = store(tmp_path)

    assert after.get(PROJECT, NAMES, "d") is None
    after.add(PROJECT, NAMES, "d", CHAPTER, MADE)
    after.save()

    assert store(tmp_path).get(PROJECT, NAMES, "d") == MADE


def test_the_oldest_leave_a_file_that_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extracts, "MOST_KEPT", 2)
    before = store(tmp_path)
    for digest in "abc":
        before.add(PROJECT, NAMES, digest, CHAPTER, MADE)
    before.save()
    after = store(tmp_path)

    assert [after.get(PROJECT, NAMES, digest) for digest in "abc"] == [None, MADE, MADE]


async def test_nothing_is_kept_of_a_project_that_was_removed(tmp_path: Path) -> None:
    kept = store(tmp_path)
    kept.add(PROJECT, NAMES, "d", CHAPTER, MADE)
    kept.save()

    await kept.forget(PROJECT)

    assert not kept_in(tmp_path).exists()
    assert kept.get(PROJECT, NAMES, "d") is None


def test_a_document_without_a_digest_is_read(tmp_path: Path) -> None:
    (tmp_path / "一.md").write_text(CHAPTER, "utf-8")
    clock = SystemClock()
    summaries = ChapterSummaries(
        SummaryStore(Tree(clock), clock), Documents(clock), store(tmp_path)
    )
    project = Project(project_id=PROJECT, name="石头记", root=tmp_path)

    made = summaries.extract(project, StoryDocument(path="一.md"), {}, NAMES)

    assert made == summarise(tmp_path, store(tmp_path))


def test_another_extract_of_the_same_text_has_another_version() -> None:
    """If this fails, raise EXTRACT_VERSION: what is kept in user data is not made again."""
    english = '# Chapter 2\n\nAnna walked to the mill. "Late," said Tom. The wheel stood still.\n'
    made = [extract(text, NAMES) for text in (CHAPTER * 3, english * 3, "")]

    digest = sha256(repr(made).encode()).hexdigest()[:16]

    assert (extracts.EXTRACT_VERSION, digest) == (1, "678b5b01c0c67022")
