import os
from pathlib import Path

import anyio
import pytest

from creonowd.clock import SystemClock
from creonowd.errors import DaemonError, ErrorCode
from creonowd.skills.library import Library, LibraryEntry, Scope
from creonowd.workspace.projects import Project

BUILT_IN = ["condense", "consistency", "continue", "dialogue", "expand", "polish"]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    (tmp_path / "user data").mkdir()
    return Library(tmp_path / "user data", SystemClock())


@pytest.fixture
def project(tmp_path: Path) -> Project:
    root = tmp_path / "小说"
    root.mkdir()
    return Project(project_id="prj_1", name="小说", root=root)


def put(project: Project, path: str, content: str) -> Path:
    file = project.root / ".creonow" / "skills" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content, encoding="utf-8")
    return file


def skill(name: str = "x", more: str = "") -> str:
    return f"---\nname: {name}\n{more}\n---\n"


async def own(library: Library, project: Project) -> list[LibraryEntry]:
    return [entry for entry in await library.entries(project) if entry.scope is not Scope.BUILTIN]


async def test_six_skills_are_built_in(library: Library) -> None:
    listed = await library.entries()

    assert [entry.id for entry in listed] == [f"builtin:{slug}" for slug in BUILT_IN]
    assert all(not entry.faults for entry in listed)
    assert {entry.path for entry in listed} == {f"builtin/{slug}/SKILL.md" for slug in BUILT_IN}


async def test_a_skill_is_a_folder_at_any_depth_or_a_file_at_the_top(
    library: Library, project: Project
) -> None:
    for path in ("诗/SKILL.md", "a/b/SKILL.md", "note.md", "诗/references/rhyme.md", "x.txt"):
        put(project, path, skill())
    put(project, "SKILL.md", skill())
    put(project, ".hidden/SKILL.md", skill())

    listed = await own(library, project)

    assert [entry.id for entry in listed] == ["project:a/b", "project:note", "project:诗"]


async def test_of_very_many_skills_the_first_are_listed(library: Library, project: Project) -> None:
    for number in range(300):
        put(project, f"{number:03}.md", skill())

    assert [entry.slug for entry in await own(library, project)] == [
        f"{number:03}" for number in range(256)
    ]


async def test_a_later_scope_wins_where_ids_are_equal(library: Library, project: Project) -> None:
    await library.write(Scope.GLOBAL, "polish", skill("g", "id: builtin:polish"), None)
    everyone = await library.find("builtin:polish")
    put(project, "mine/SKILL.md", skill("p", "id: builtin:polish"))

    here = await library.find("builtin:polish", project)
    listed = await library.entries(project)

    assert everyone is not None
    assert here is not None
    assert (everyone.scope, everyone.name) == (Scope.GLOBAL, "g")
    assert (here.scope, here.name) == (Scope.PROJECT, "p")
    assert [entry.id for entry in listed].count("builtin:polish") == 1


async def test_a_bare_slug_finds_the_nearest_scope(library: Library, project: Project) -> None:
    far = await library.find("polish", project)
    put(project, "polish/SKILL.md", skill())

    near = await library.find("polish", project)

    assert far is not None
    assert near is not None
    assert (far.id, near.id) == ("builtin:polish", "project:polish")
    assert await library.find("nobody") is None


async def test_an_invalid_skill_stays_listed_with_its_line(
    library: Library, project: Project
) -> None:
    put(project, "bad/SKILL.md", skill("x", "context_rules: {surounding: 1}"))
    put(project, "text/SKILL.md", "no front matter")
    put(project, "huge/SKILL.md", skill() + "x" * 300_000)

    listed = {entry.slug: entry.faults[0] for entry in await own(library, project)}

    assert (listed["bad"].key, listed["bad"].line) == ("context_rules.surounding", 3)
    assert listed["text"].line == 1
    assert "larger than" in listed["huge"].message


async def test_an_invalid_skill_still_hides_the_one_it_replaces(
    library: Library, project: Project
) -> None:
    """Falling back to another text than the one on screen would puzzle its author."""
    put(project, "polish/SKILL.md", "---\nid: builtin:polish\ncontext_rules: 5\n---\n")

    found = await library.find("builtin:polish", project)
    listed = [entry.id for entry in await library.entries(project)]

    assert found is not None
    assert found.scope is Scope.PROJECT
    assert found.faults
    assert listed.count("builtin:polish") == 1


async def test_an_edit_counts_at_the_next_call(library: Library, project: Project) -> None:
    file = put(project, "a/SKILL.md", skill("one"))
    before = await library.find("project:a", project)

    file.write_text(skill("two"), encoding="utf-8")
    edited = await library.find("project:a", project)
    file.unlink()
    gone = await library.find("project:a", project)

    assert before is not None
    assert edited is not None
    assert (before.name, edited.name, gone) == ("one", "two", None)


async def test_the_second_skill_with_an_id_is_listed_with_a_fault(
    library: Library, project: Project
) -> None:
    put(project, "a/SKILL.md", skill("a", "id: mine"))
    put(project, "b/SKILL.md", skill("b", "id: mine"))

    first, second = await own(library, project)

    assert (first.id, first.faults) == ("mine", ())
    assert second.faults[0].message == "The id mine is taken by .creonow/skills/a/SKILL.md."
    assert second.id != "mine"


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_links_out_of_the_folder_are_not_followed(
    library: Library, project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    (outside / "evil").mkdir(parents=True)
    (outside / "evil" / "SKILL.md").write_text(skill(), encoding="utf-8")
    skills = project.root / ".creonow" / "skills"
    (skills / "b").mkdir(parents=True)
    (skills / "a").symlink_to(outside / "evil")
    (skills / "b" / "SKILL.md").symlink_to(outside / "evil" / "SKILL.md")
    inside = await own(library, project)
    (skills / "b" / "SKILL.md").unlink()
    (skills / "b").rmdir()
    (skills / "a").unlink()
    skills.rmdir()
    skills.symlink_to(outside)

    assert inside == []
    assert await own(library, project) == []
    with pytest.raises(DaemonError):
        await library.write(Scope.PROJECT, "a", skill(), project)


async def test_what_is_written_is_listed_byte_for_byte(library: Library, project: Project) -> None:
    content = skill("诗 😀").replace("\n", "\r\n")

    entry = await library.write(Scope.PROJECT, "诗", content, project)

    file = project.root / ".creonow/skills/诗/SKILL.md"
    assert file.read_bytes() == content.encode()
    assert entry.content == content
    assert entry == await library.find("project:诗", project)


async def test_writing_again_replaces_the_file_where_it_is(
    library: Library, project: Project
) -> None:
    put(project, "note.md", skill("one"))

    entry = await library.write(Scope.PROJECT, "Note", skill("two"), project)

    assert entry.path == ".creonow/skills/note.md"
    assert [entry.name for entry in await own(library, project)] == ["two"]


@pytest.mark.parametrize(
    ("content", "slug"),
    [
        (skill("My Skill!"), "my-skill"),
        (skill("诗 与 远方"), "诗-与-远方"),
        (skill("x", "id: project:verse"), "verse"),
    ],
)
async def test_without_a_slug_the_skill_names_itself(
    library: Library, project: Project, content: str, slug: str
) -> None:
    assert (await library.write(Scope.PROJECT, None, content, project)).slug == slug


@pytest.mark.parametrize(
    "slug", ["", ".", "..", "../x", "a/b", "a\\b", ".git", "con", "x" * 65, "a\0", "a:b", "a "]
)
async def test_a_slug_is_one_plain_name(library: Library, project: Project, slug: str) -> None:
    with pytest.raises(DaemonError) as caught:
        await library.write(Scope.PROJECT, slug, skill(), project)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details["field"] == "slug"


async def test_a_skill_without_any_name_needs_a_slug(library: Library, project: Project) -> None:
    with pytest.raises(DaemonError) as caught:
        await library.write(Scope.PROJECT, None, "---\n---\n", project)

    assert caught.value.details["field"] == "slug"


async def test_an_invalid_skill_is_not_written(library: Library, project: Project) -> None:
    with pytest.raises(DaemonError) as caught:
        await library.write(Scope.PROJECT, "a", skill("x", "context_rules: {foo: 1}"), project)

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details["key"] == "context_rules.foo"
    assert "(line 3)" in caught.value.message
    assert not (project.root / ".creonow").exists()


async def test_an_id_that_another_skill_has_is_not_taken(
    library: Library, project: Project
) -> None:
    await library.write(Scope.PROJECT, "a", skill("x", "id: mine"), project)

    with pytest.raises(DaemonError) as caught:
        await library.write(Scope.PROJECT, "b", skill("x", "id: mine"), project)

    assert "taken by .creonow/skills/a/SKILL.md" in caught.value.message


async def test_built_in_skills_cannot_be_written(library: Library) -> None:
    for scope in (Scope.BUILTIN, Scope.PROJECT):
        with pytest.raises(DaemonError) as caught:
            await library.write(scope, "a", skill(), None)

        assert caught.value.details["field"] == "scope"


async def test_many_writers_leave_one_whole_file(library: Library, project: Project) -> None:
    contents = [skill(f"n{n}") + "x" * 10_000 for n in range(8)]

    async with anyio.create_task_group() as tasks:
        for content in contents:
            tasks.start_soon(library.write, Scope.PROJECT, "a", content, project)

    file = project.root / ".creonow/skills/a/SKILL.md"
    assert file.read_text(encoding="utf-8") in contents
    assert os.listdir(file.parent) == ["SKILL.md"]  # noqa: PTH208
