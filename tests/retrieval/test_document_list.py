"""Which files are documents."""

import os
import sys
import tracemalloc
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import WarningCode
from creonowd.retrieval import document_list
from creonowd.retrieval.document_list import (
    IgnoreRules,
    PatternSet,
    documents_in,
    find_documents,
    hiding_line,
    is_excluded,
)
from testing.privileges import no_descriptors


def lay_out(root: Path, *paths: str, **contents: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(contents.get(path, "雪"), encoding="utf-8")


def ignore(root: Path, path: str, *lines: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("\n".join(lines), encoding="utf-8")


def test_texts_are_found_wherever_they_lie(tmp_path: Path):
    lay_out(tmp_path, "a.md", "卷一/第一章.MD", "notes/deep/er.txt", "b.markdown")

    assert set(documents_in(tmp_path)) == {
        "a.md",
        "卷一/第一章.MD",
        "notes/deep/er.txt",
        "b.markdown",
    }


@pytest.mark.parametrize(
    "path",
    [
        ".creonow/rules/style.md",
        ".hidden/a.md",
        "notes/.git/b.md",
        ".c.md",
        "node_modules/x/README.md",
        "picture.png",
        "a.md.bak",
        "folder.md/inside.json",
    ],
)
def test_what_is_hidden_foreign_or_no_text_is_excluded(tmp_path: Path, path: str):
    lay_out(tmp_path, path)

    assert documents_in(tmp_path) == {}


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (["drafts/"], {"a.md", "b/c.md", "b/notes.md"}),
        (["*.md", "!a.md"], {"a.md"}),
        (["/b"], {"a.md", "drafts/d.md"}),
        (["b/*.md", "!b/c.md"], {"a.md", "drafts/d.md", "b/c.md"}),
        (["**/notes.md"], {"a.md", "drafts/d.md", "b/c.md"}),
        (["notes.*", "# a.md", "", "  "], {"a.md", "drafts/d.md", "b/c.md"}),
        (["?.md"], {"b/notes.md"}),
        (["[cd].md"], {"a.md", "b/notes.md"}),
        (["[!a].md"], {"a.md", "b/notes.md"}),
        (["b/**"], {"a.md", "drafts/d.md"}),
        (["[", "\\"], {"a.md", "b/c.md", "b/notes.md", "drafts/d.md"}),
        (["[z-a].md", "*(", "!", "/", "[[:x:]]"], {"a.md", "b/c.md", "b/notes.md", "drafts/d.md"}),
        (["[z-a].md", "a.md"], {"b/c.md", "b/notes.md", "drafts/d.md"}),
        (["a+b (1)?.md", "c{2}.md", "^d.md$"], {"a.md", "b/c.md", "b/notes.md", "drafts/d.md"}),
    ],
)
def test_what_an_ignore_file_names_is_excluded(tmp_path: Path, lines: list[str], left: set[str]):
    lay_out(tmp_path, "a.md", "b/c.md", "b/notes.md", "drafts/d.md")
    ignore(tmp_path, ".gitignore", *lines)

    assert set(documents_in(tmp_path)) == left


@given(st.text(alphabet="ab*?[]!-^\\/.{}()+$#: 雪", max_size=20))
def test_no_line_of_an_ignore_file_can_do_harm(line: str):
    rules = IgnoreRules().inside("", PatternSet(f"{line}\nc.md"))

    assert rules.ignore("c.md", is_folder=False)


def test_a_line_of_many_stars_takes_no_time():
    rules = IgnoreRules().inside("", PatternSet("*a" * 30 + "*b"))

    assert not rules.ignore("a" * 250, is_folder=False)


@pytest.mark.parametrize(
    ("path", "excluded"),
    [
        ("chapters/01.md", False),
        ("untitled:1", False),
        ("3f2c-77", False),
        (".creonow/rules/style.md", True),
        ("notes/.hidden/a.md", True),
        ("../outside.md", True),
        ("node_modules/x/README.md", True),
        ("notes/__pycache__/a.md", True),
        ("drafts/01.md", True),
        ("drafts/deep/01.md", True),
        ("b/secret.md", True),
        ("secret.md", False),
    ],
)
def test_what_is_open_is_excluded_where_no_documents_are(
    tmp_path: Path, path: str, *, excluded: bool
):
    ignore(tmp_path, ".gitignore", "drafts/")
    ignore(tmp_path, "b/.gitignore", "/secret.md")

    assert is_excluded(tmp_path, path) is excluded


def test_an_inner_ignore_file_holds_for_its_folder(tmp_path: Path):
    lay_out(tmp_path, "a.md", "b/a.md", "b/c.md", "b/d/a.md")
    ignore(tmp_path, "b/.ignore", "/a.md")

    assert set(documents_in(tmp_path)) == {"a.md", "b/c.md", "b/d/a.md"}


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("drafts/a.md", (".gitignore", 2)),
        ("deep/drafts/a.md", (".gitignore", 2)),
        ("old-2.md", (".gitignore", 5)),
        ("old-3.md", None),
        ("deep/note.txt", ("deep/.ignore", 1)),
        ("note.txt", None),
    ],
)
def test_the_line_that_hides_a_document_is_found(
    tmp_path: Path, path: str, line: tuple[str, int] | None
) -> None:
    lay_out(tmp_path, path)
    ignore(tmp_path, ".gitignore", "# mine", "drafts/", "old-*", "!old-*.md", "old-[12].md")
    ignore(tmp_path, "deep/.ignore", "*.txt")

    assert hiding_line(tmp_path, path) == line
    assert is_excluded(tmp_path, path) is (line is not None)


def test_links_are_not_followed(tmp_path: Path):
    lay_out(tmp_path, "project/a.md", "outside/secret.md")
    (tmp_path / "project/link.md").symlink_to(tmp_path / "outside/secret.md")
    (tmp_path / "project/folder").symlink_to(tmp_path / "outside")
    (tmp_path / "project/circle").symlink_to(tmp_path / "project")

    assert set(documents_in(tmp_path / "project")) == {"a.md"}


@pytest.mark.skipif(sys.platform != "linux", reason="only there can a name be no text")
def test_names_that_are_no_text_are_passed_over(tmp_path: Path):
    (tmp_path / os.fsdecode(b"\xff.md")).write_text("雪", encoding="utf-8")

    assert documents_in(tmp_path) == {}


def test_a_folder_that_is_gone_has_no_documents(tmp_path: Path):
    assert documents_in(tmp_path / "gone") == {}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit on descriptors to set")
def test_without_descriptors_nothing_is_called_absent_or_allowed(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.md", "hidden.md")
    ignore(tmp_path, ".gitignore", "hidden.md")

    with no_descriptors():
        with pytest.raises(OSError, match="Too many open files"):
            documents_in(tmp_path)
        with pytest.raises(OSError, match="Too many open files"):
            is_excluded(tmp_path, "hidden.md")

    assert set(documents_in(tmp_path)) == {"a.md"}


@pytest.mark.parametrize(
    "pattern", ["x{}", "*.{}", "a{}*", "*{}*x", "!x{}", "/卷/{}", "d{}/", "*{}/"]
)
def test_thousands_of_patterns_are_matched_against_thousands_of_documents(pattern: str) -> None:
    rules = IgnoreRules().inside(
        "", PatternSet("\n".join(pattern.format(f"{n:04}") for n in range(8000)))
    )
    paths = [f"卷/第{n}章 {n * 7919 % 100_000}.md" for n in range(2000)]

    ignored = [path for path in paths if rules.ignore(path, is_folder=False)]

    assert ignored == []


def test_the_last_of_many_patterns_decides() -> None:
    lines = [f"*{n}*" if n % 2 else f"!*{n}*" for n in range(1000)]
    rules = IgnoreRules().inside("", PatternSet("\n".join(lines)))

    assert rules.ignore("a997b.md", is_folder=False)
    assert not rules.ignore("a998b.md", is_folder=False)
    assert not rules.ignore("b.md", is_folder=False)


def test_an_ignore_file_that_is_too_long_is_cut_at_a_line(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.md", "hidden.md")
    filler = "x" * (64 * 1024 - len("hidden.md\n") - 1)
    ignore(tmp_path, ".gitignore", "hidden.md", filler, "*.md-only-this")

    found = find_documents(tmp_path)

    assert set(found.documents) == {"a.md"}
    assert found.cut_ignore_files == (".gitignore",)
    assert [(one.code, one.source_ref) for one in found.cautions()] == [
        (WarningCode.IGNORE_FILE_CUT, ".gitignore")
    ]


def test_all_ignore_files_of_a_project_have_one_limit(tmp_path: Path) -> None:
    """Three hundred folders with an ignore file each took 2.4 GB."""
    lay_out(tmp_path, "a.md", "b/hidden.md", "c/hidden.md", "d/hidden.md")
    for folder, lines in (("b", 3000), ("c", 3000), ("d", 1)):
        wildcards = (f"*x{folder}{number:04}y*z" for number in range(lines))
        ignore(tmp_path, f"{folder}/.gitignore", *wildcards, "hidden.md")

    found = find_documents(tmp_path)

    assert set(found.documents) == {"a.md", "c/hidden.md", "d/hidden.md"}
    assert found.cut_ignore_files == ("c/.gitignore", "d/.gitignore")


def test_the_same_ignore_file_in_many_folders_counts_once(tmp_path: Path) -> None:
    lay_out(tmp_path, *(f"{folder}/hidden.md" for folder in "abcdef"))
    for folder in "abcdef":
        ignore(tmp_path, f"{folder}/.gitignore", "hidden.md", "#" * 40_000)

    found = find_documents(tmp_path)

    assert (found.documents, found.cut_ignore_files) == ({}, ())


def test_a_walk_among_many_patterns_ends_when_it_is_stopped(tmp_path: Path) -> None:
    lay_out(tmp_path, *(f"{number}.md" for number in range(500)))
    looks = iter(range(100))

    found = find_documents(tmp_path, lambda: next(looks, 100) >= 50)

    assert not found.is_complete
    assert len(found.documents) < 60


def test_an_ignore_file_of_just_the_limit_is_whole(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.md")
    (tmp_path / ".ignore").write_bytes(b"x" * (64 * 1024 - 5) + b"\n*.md")

    found = find_documents(tmp_path)

    assert found.documents == {}
    assert found.cautions() == ()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes in folders")
def test_an_ignore_file_that_is_a_pipe_is_no_ignore_file(tmp_path: Path) -> None:
    lay_out(tmp_path, "a.md")
    os.mkfifo(tmp_path / ".gitignore")

    assert set(documents_in(tmp_path)) == {"a.md"}


def test_a_huge_folder_is_cut_short_far_from_its_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, "a.md", "b/c.md", "b/d/e.md", "b/d/f/g.md")
    whole = find_documents(tmp_path)
    monkeypatch.setattr(document_list, "MAX_ENTRIES", 4)

    cut = find_documents(tmp_path)

    assert whole.is_complete
    assert whole.cautions() == ()
    assert not cut.is_complete
    assert [(one.code, one.details) for one in cut.cautions()] == [
        (WarningCode.DOCUMENTS_LEFT_OUT, (("documents", 2),))
    ]
    assert list(cut.documents) == ["a.md", "b/c.md"]


def test_a_folder_of_very_many_files_takes_no_more_memory_than_what_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One folder with 200 000 documents took 324 MB."""
    lay_out(tmp_path, *(f"{number:04}.md" for number in range(3000)))
    find_documents(tmp_path)  # what is remembered of names is no part of it
    monkeypatch.setattr(document_list, "MAX_DOCUMENTS", 50)
    tracemalloc.start()
    try:
        found = find_documents(tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert list(found.documents) == [f"{number:04}.md" for number in range(50)]
    assert not found.is_complete
    assert peak < 3000 * 100


def test_a_search_keeps_nothing_of_a_file_but_its_name_and_its_mark(tmp_path: Path) -> None:
    """What a scan knows of one file is 700 bytes more."""
    for number in range(3000):
        (tmp_path / f"{number}.md").touch()
    find_documents(tmp_path)
    tracemalloc.start()
    try:
        found = find_documents(tmp_path)
        kept, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert len(found.documents) == 3000
    assert most - kept < 3000 * 350


def test_ignored_files_leave_room_for_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lay_out(tmp_path, "b.md", *(f"a{number}.md" for number in range(9)))
    ignore(tmp_path, ".gitignore", "a*")
    monkeypatch.setattr(document_list, "MAX_DOCUMENTS", 3)

    assert list(documents_in(tmp_path)) == ["b.md"]


@pytest.mark.parametrize(
    "documents",
    [[f"{n}/a.md" for n in range(400)], [f"{n}.md" for n in range(2000)]],
    ids=["many folders", "many files"],
)
def test_a_search_for_documents_ends_where_it_is_stopped(
    tmp_path: Path, documents: list[str]
) -> None:
    """Neither many folders nor one with many files keeps who waits for the end."""
    lay_out(tmp_path, *documents)
    looks = count()

    found = find_documents(tmp_path, lambda: next(looks) >= 2)

    assert not found.is_complete
    assert len(found.documents) < 2
    assert next(looks) < 10
