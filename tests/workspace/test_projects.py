import os
import subprocess
import sys
import unicodedata
from pathlib import Path

import anyio
import msgspec
import pytest

from creonowd.cli import assemble
from creonowd.clock import SystemClock
from creonowd.context_files import record_store
from creonowd.daemon import endpoint
from creonowd.errors import DaemonError, ErrorCode
from creonowd.logs import LOG_FOLDER
from creonowd.retrieval import project_index
from creonowd.settings import KEYS
from creonowd.sources import chapter_summaries
from creonowd.tokens import tables
from creonowd.workspace import budgets, runs, usage
from creonowd.workspace.projects import Projects, absence_reason, project_root, sweep_user_data
from testing.clients import run_daemon

STORES = (
    *(assemble.FOLDER, record_store.FOLDER, endpoint.RUN, LOG_FOLDER, project_index.FOLDER, KEYS),
    *(chapter_summaries.FOLDER, record_store.HISTORIES, tables.FOLDER, budgets.FOLDER),
    *(runs.FOLDER, usage.FOLDER, "skills"),
)

WRITER = """
import asyncio, sys
from pathlib import Path
from creonowd.clock import SystemClock
from creonowd.workspace.projects import Projects, sweep_user_data
from testing.clients import run_daemon

async def main():
    registry = Projects(Path(sys.argv[1]), SystemClock())
    for number in range(10_000):
        folder = Path(sys.argv[2]) / str(number)
        folder.mkdir(exist_ok=True)
        print((await registry.create(str(folder))).project_id, flush=True)

asyncio.run(main())
"""


needs_links = pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")


@pytest.fixture
def user_data(tmp_path: Path) -> Path:
    return tmp_path / "user data"


@pytest.fixture
def book(tmp_path: Path) -> Path:
    folder = tmp_path / "红楼梦"
    folder.mkdir()
    return folder


@pytest.fixture
def registry(user_data: Path) -> Projects:
    return Projects(user_data, SystemClock())


async def test_a_folder_becomes_a_project_with_the_name_of_the_folder(
    registry: Projects, book: Path
) -> None:
    project = await registry.create(str(book))

    assert project.name == "红楼梦"
    assert project.root == book
    assert project.project_id.startswith("prj_")
    assert await registry.find(project.project_id) == project


@pytest.mark.parametrize("name", [None, "", "  "])
async def test_a_blank_name_is_the_name_of_the_folder(
    registry: Projects, book: Path, name: str | None
) -> None:
    assert (await registry.create(str(book), name)).name == "红楼梦"


async def test_the_same_folder_stays_the_same_project_and_keeps_its_name(
    registry: Projects, book: Path
) -> None:
    first = await registry.create(str(book), "石头记")
    second = await registry.create(str(book), "another")

    assert second == first
    assert await registry.list() == [first]


@pytest.mark.parametrize("spelling", ["{}/", "{}/.", "{}/../红楼梦", "{}//", "{}/inner/.."])
async def test_two_spellings_of_one_folder_are_one_project(
    registry: Projects, book: Path, spelling: str
) -> None:
    (book / "inner").mkdir()

    first = await registry.create(str(book))
    second = await registry.create(spelling.format(book))

    assert second == first


@needs_links
async def test_a_link_to_a_folder_is_the_folder(registry: Projects, book: Path) -> None:
    link = book.parent / "link"
    link.symlink_to(book, target_is_directory=True)

    through_link = await registry.create(str(link))
    direct = await registry.create(str(book))

    assert direct == through_link
    assert through_link.root == book


@pytest.mark.parametrize(("on_disk", "asked"), [("NFC", "NFD"), ("NFD", "NFC")])
async def test_the_unicode_form_of_a_name_makes_no_second_project(
    registry: Projects, tmp_path: Path, on_disk: str, asked: str
) -> None:
    name = "Café für Élodie"
    folder = tmp_path / unicodedata.normalize(on_disk, name) / "livre"  # pyright: ignore[reportArgumentType]
    folder.mkdir(parents=True)

    first = await registry.create(str(folder))
    second = await registry.create(unicodedata.normalize(asked, str(folder)))  # pyright: ignore[reportArgumentType]

    assert second == first


async def test_case_decides_only_where_the_disk_distinguishes_cases(
    registry: Projects, tmp_path: Path
) -> None:
    (tmp_path / "Novel").mkdir()
    blind = (tmp_path / "nOVEL").exists()
    (tmp_path / "nOVEL").mkdir(exist_ok=True)

    first = await registry.create(str(tmp_path / "Novel"))
    second = await registry.create(str(tmp_path / "nOVEL"))

    assert (first == second) is blind


@pytest.mark.parametrize(
    ("root_path", "code", "reason"),
    [
        ("{}/missing", ErrorCode.NOT_FOUND, "missing"),
        ("{}/chapter.md", ErrorCode.INVALID_ARGUMENT, "not_a_folder"),
        ("{}/chapter.md/inside", ErrorCode.INVALID_ARGUMENT, "not_a_folder"),
        pytest.param("{}/loop", ErrorCode.INVALID_ARGUMENT, "not_a_folder", marks=needs_links),
        ("relative/folder", ErrorCode.INVALID_ARGUMENT, "relative"),
        ("~", ErrorCode.INVALID_ARGUMENT, "relative"),
        ("", ErrorCode.INVALID_ARGUMENT, "relative"),
        ("{}/nul\0", ErrorCode.INVALID_ARGUMENT, "relative"),
        ("{}/" + "长" * 300, ErrorCode.INVALID_ARGUMENT, "invalid"),
    ],
)
async def test_what_is_no_folder_is_refused_with_a_reason(
    registry: Projects, book: Path, root_path: str, code: ErrorCode, reason: str
) -> None:
    (book / "chapter.md").touch()
    if "loop" in root_path:
        (book / "loop").symlink_to(book / "loop")

    with pytest.raises(DaemonError) as caught:
        await registry.create(root_path.format(book))

    assert caught.value.code is code
    assert caught.value.details == {"field": "rootPath", "reason": reason}
    assert str(book) not in caught.value.message
    assert await registry.list() == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs a folder that even root cannot write to")
async def test_a_folder_that_cannot_be_written_to_is_refused(registry: Projects) -> None:
    with pytest.raises(DaemonError) as caught:
        await registry.create("/proc")

    assert caught.value.code is ErrorCode.IO_ERROR
    assert caught.value.details["reason"] == "not_writable"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names themselves")
async def test_a_folder_whose_name_is_not_unicode_is_refused(
    registry: Projects, tmp_path: Path
) -> None:
    nameless = os.fsencode(tmp_path) + b"/\xff\xfe"
    os.mkdir(nameless)  # noqa: PTH102
    os.symlink(nameless, os.fsencode(tmp_path) + b"/link")  # noqa: PTH211

    with pytest.raises(DaemonError) as caught:
        await registry.create(str(tmp_path / "link"))

    assert caught.value.details["reason"] == "not_unicode"


async def test_making_a_project_leaves_nothing_in_the_folder(
    registry: Projects, book: Path
) -> None:
    await registry.create(str(book))

    assert list(book.iterdir()) == []


async def test_an_unknown_project_is_not_found(registry: Projects) -> None:
    with pytest.raises(DaemonError) as caught:
        await registry.find("prj_unknown")

    assert caught.value.code is ErrorCode.NOT_FOUND


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000"])
async def test_a_blank_id_is_an_invalid_argument(registry: Projects, blank: str) -> None:
    for ask in (registry.find, registry.set_current, registry.delete):
        with pytest.raises(DaemonError) as caught:
            await ask(blank)

        assert caught.value.code is ErrorCode.INVALID_ARGUMENT
        assert caught.value.details == {"field": "projectId"}


async def test_the_current_project_is_remembered_over_a_restart(
    registry: Projects, user_data: Path, book: Path
) -> None:
    project = await registry.create(str(book))
    await registry.set_current(project.project_id)

    reborn = Projects(user_data, SystemClock())

    assert await reborn.current() == project
    assert await reborn.list() == [project]


async def test_no_project_is_current_until_one_is_set(registry: Projects, book: Path) -> None:
    await registry.create(str(book))

    with pytest.raises(DaemonError) as caught:
        await registry.current()

    assert caught.value.code is ErrorCode.NOT_FOUND


async def test_deleting_forgets_the_project_and_keeps_every_file(
    registry: Projects, user_data: Path, book: Path
) -> None:
    (book / "第一回.md").write_text("此开卷第一回也。", encoding="utf-8")
    project = await registry.create(str(book))
    await registry.set_current(project.project_id)

    await registry.delete(project.project_id)

    assert (book / "第一回.md").read_text(encoding="utf-8") == "此开卷第一回也。"
    assert await Projects(user_data, SystemClock()).list() == []
    for ask in (registry.current(), registry.find(project.project_id)):
        with pytest.raises(DaemonError) as caught:
            await ask
        assert caught.value.code is ErrorCode.NOT_FOUND


async def test_a_project_made_again_after_deletion_is_a_new_one(
    registry: Projects, book: Path
) -> None:
    first = await registry.create(str(book))
    await registry.delete(first.project_id)

    second = await registry.create(str(book))

    assert second.project_id != first.project_id


async def test_many_at_once_make_one_project(registry: Projects, book: Path) -> None:
    made: list[str] = []

    async def make() -> None:
        made.append((await registry.create(str(book))).project_id)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(make)

    assert len(made) == 20
    assert len(set(made)) == 1


async def test_a_damaged_file_costs_no_project_while_the_spare_is_whole(
    registry: Projects, user_data: Path, book: Path
) -> None:
    """All that is kept of a project goes by its id; a new id would orphan it."""
    made = await registry.create(str(book))
    (user_data / "projects.json").write_bytes(b"\xff")

    again = Projects(user_data, SystemClock())

    assert await again.list() == [made]
    assert again.set_aside == "projects.damaged-1.json"
    assert await Projects(user_data, SystemClock()).list() == [made]


async def test_a_damaged_file_is_kept_aside_and_reported(
    registry: Projects, user_data: Path, book: Path
) -> None:
    user_data.mkdir()
    (user_data / "projects.json").write_bytes(b'{"version": 1, "projects": [{')

    project = await registry.create(str(book))

    assert registry.set_aside == "projects.damaged-1.json"
    assert (user_data / registry.set_aside).read_bytes() == b'{"version": 1, "projects": [{'
    assert await Projects(user_data, SystemClock()).list() == [project]


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[]", b"null", b'{"version":1,"projects":7}', b"[" * 100_000]
)
async def test_any_damage_is_survived(registry: Projects, user_data: Path, content: bytes) -> None:
    user_data.mkdir()
    (user_data / "projects.json").write_bytes(content)

    assert await registry.list() == []
    assert (user_data / "projects.damaged-1.json").read_bytes() == content


async def test_a_newer_file_is_refused_and_never_rewritten(
    registry: Projects, user_data: Path, book: Path
) -> None:
    user_data.mkdir()
    newer = b'{"version": 2, "projects": {"shape": "unknown"}}'
    (user_data / "projects.json").write_bytes(newer)

    for ask in (registry.list(), registry.create(str(book)), registry.set_current("x")):
        with pytest.raises(DaemonError) as caught:
            await ask
        assert caught.value.code is ErrorCode.VERSION_TOO_NEW

    assert (user_data / "projects.json").read_bytes() == newer
    assert [entry.name for entry in user_data.iterdir()] == ["projects.json"]


async def test_the_file_says_its_version(registry: Projects, user_data: Path, book: Path) -> None:
    await registry.create(str(book))

    content = msgspec.json.decode((user_data / "projects.json").read_bytes())

    assert content["version"] == 1


async def test_a_kill_loses_no_acknowledged_project(user_data: Path, tmp_path: Path) -> None:
    acknowledged: set[str] = set()

    for round_number in range(8):
        books = tmp_path / f"books {round_number}"
        books.mkdir()
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(user_data), str(books)],
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert writer.stdout is not None
        acknowledged |= {writer.stdout.readline().strip() for _ in range(1 + 2 * round_number)}
        writer.kill()
        acknowledged |= {line.strip() for line in writer.stdout if line.endswith("\n")}
        writer.wait()
        writer.stdout.close()

    kept = {project.project_id for project in await Projects(user_data, SystemClock()).list()}
    assert acknowledged <= kept
    assert len(acknowledged) >= 64


@pytest.mark.parametrize(
    ("root", "reason"),
    [
        ("{data}", "user_data"),
        *(("{data}/" + name, "user_data") for name in (*STORES, "projects")),
        ("{data}/..", "user_data"),
        pytest.param("{data}/../link", "user_data", marks=needs_links),
        ("{home}", "too_wide"),
        ("{home}/..", "too_wide"),
        (Path("/").absolute().anchor, "too_wide"),
    ],
)
async def test_what_holds_more_than_a_project_is_refused_with_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, reason: str
) -> None:
    home, data = tmp_path / "home" / "lin", tmp_path / "app" / "data"
    home.mkdir(parents=True)
    for name in (*STORES, "projects"):
        (data / name).mkdir(parents=True)
    if "link" in root:
        (data.parent / "link").symlink_to(data)
    monkeypatch.setenv("USERPROFILE" if sys.platform == "win32" else "HOME", str(home))
    registry = Projects(data, SystemClock())

    with pytest.raises(DaemonError) as caught:
        await registry.create(root.format(data=data, home=home))

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details == {"field": "rootPath", "reason": reason}
    assert await registry.list() == []


@pytest.mark.skipif(sys.platform == "win32", reason="there the environment alone names the home")
def test_the_home_that_the_system_knows_is_refused_whatever_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A daemon in a sandbox, or one started by sudo, has another HOME."""
    monkeypatch.delenv("HOME")
    home = Path.home()
    monkeypatch.setenv("HOME", str(tmp_path))

    with pytest.raises(DaemonError) as caught:
        project_root(str(home), tmp_path / "data")

    assert caught.value.details == {"field": "rootPath", "reason": "too_wide"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no list of accounts in a file")
def test_the_home_of_every_other_account_is_refused(tmp_path: Path) -> None:
    import pwd

    homes = {os.path.realpath(account.pw_dir) for account in pwd.getpwall()}
    theirs = sorted(home for home in homes if os.path.isdir(home))  # noqa: PTH112 - as it is spelt
    assert len(theirs) > 1

    for home in theirs:
        with pytest.raises(DaemonError) as caught:
            project_root(home, tmp_path / "data")

        assert caught.value.code is ErrorCode.INVALID_ARGUMENT, home
        assert caught.value.details == {"field": "rootPath", "reason": "too_wide"}, home


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no accounts of a network")
@pytest.mark.parametrize("known_by", ["getpwuid", "getpwnam"])
def test_the_home_of_an_account_of_the_network_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known_by: str
) -> None:
    """It stands in no file; it is asked for by the folder's owner and by its name."""
    import pwd

    home = tmp_path / "net" / "lin"
    (home / "novel").mkdir(parents=True)
    owner = home.stat().st_uid
    account = pwd.struct_passwd(("lin", "x", owner, 0, "", str(home), ""))
    known = {owner, "lin"}

    def find(key: int | str) -> pwd.struct_passwd:
        if key in known:
            return account
        raise KeyError(key)

    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    monkeypatch.setattr(pwd, known_by, find)

    with pytest.raises(DaemonError) as caught:
        project_root(str(home), tmp_path / "data")

    assert caught.value.details == {"field": "rootPath", "reason": "too_wide"}
    assert project_root(str(home / "novel"), tmp_path / "data") == home / "novel"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no accounts of a network")
def test_an_account_without_a_home_makes_no_folder_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty path leads to the current folder."""
    import pwd

    novel = tmp_path / "novel"
    novel.mkdir()
    monkeypatch.chdir(novel)
    account = pwd.struct_passwd(("novel", "x", 1, 0, "", "", ""))
    monkeypatch.setattr(pwd, "getpwnam", {novel.name: account}.__getitem__)

    assert project_root(str(novel), tmp_path / "data") == novel


@pytest.mark.skipif(sys.platform != "win32", reason="elsewhere accounts say where homes are")
def test_on_windows_the_profiles_beside_ones_own_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = tmp_path / "Users" / "lin", tmp_path / "Users" / "mei"
    for folder in (mine, other / "novel"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("USERPROFILE", str(mine))

    with pytest.raises(DaemonError) as caught:
        project_root(str(other), tmp_path / "data")

    assert caught.value.details == {"field": "rootPath", "reason": "too_wide"}
    assert project_root(str(other / "novel"), tmp_path / "data") == other / "novel"


async def test_a_folder_in_a_home_is_a_project_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USERPROFILE" if sys.platform == "win32" else "HOME", str(tmp_path))
    (tmp_path / "novel").mkdir()
    registry = Projects(tmp_path / "data", SystemClock())

    assert (await registry.create(str(tmp_path / "novel"))).name == "novel"


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("石头记", "石头记"),
        ("../../etc", "_.._etc"),
        (".ssh", "ssh"),
        ("a/b\\c:d", "a_b_c_d"),
        ("CON", "_CON"),
        (" . ", "project"),
        ("长" * 200, "长" * 60),
    ],
)
async def test_a_project_by_name_alone_gets_a_folder_of_its_own(
    tmp_path: Path, name: str, folder: str
) -> None:
    registry = Projects(tmp_path / "data", SystemClock())

    first, second = await registry.create_folder(name), await registry.create_folder(name)

    assert first.root == (tmp_path / "data" / "projects" / folder).resolve()
    assert second.root.name == f"{folder} 2"
    assert first.project_id != second.project_id
    assert first.root.is_dir()


def plant(path: Path) -> Path:
    """Write a file that was last written long ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"half")
    os.utime(path, (1_600_000_000, 1_600_000_000))
    return path


def test_what_killed_writers_left_in_user_data_is_swept_and_nothing_else(tmp_path: Path) -> None:
    name = ".creonow-12-3.tmp"
    ours = [
        plant(tmp_path / folder / name)
        for folder in ("", "runs/prj_1", "context/chat/artifacts/tool", *STORES)
    ]
    foreign = [
        plant(tmp_path / place)
        for place in (
            f"projects/novel/{name}",
            f"others/{name}",
            ".creonow-notes.tmp",
            "budgets/mine.tmp",
            "runs/.creonow-1-2.tmp.md",
        )
    ]
    under_way = tmp_path / "budgets" / ".creonow-12-4.tmp"
    under_way.write_bytes(b"half")

    sweep_user_data(tmp_path, now_ms=1_700_000_000_000)

    assert not [path for path in ours if path.exists()]
    assert all(path.exists() for path in (*foreign, under_way))


@needs_links
def test_half_a_copy_of_the_sample_is_swept(tmp_path: Path) -> None:
    projects = tmp_path / "projects"
    half, mine = projects / ".sample-zh-0a1b2c3d", projects / ".sample-zh-mine"
    fresh, link = projects / ".sample-en-00000000", projects / ".sample-en-11111111"
    for folder in (half, mine, fresh):
        plant(folder / "chapter.md")
    link.symlink_to(mine)
    for folder in (half, mine):
        os.utime(folder, (1_600_000_000, 1_600_000_000))

    sweep_user_data(tmp_path, now_ms=1_700_000_000_000)

    assert not half.exists()
    assert all((folder / "chapter.md").exists() for folder in (mine, fresh, link))


@needs_links
def test_a_sweep_follows_no_link(tmp_path: Path) -> None:
    outside = plant(tmp_path / "outside" / ".creonow-1-1.tmp")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "budgets").symlink_to(outside.parent)
    (tmp_path / "data" / ".creonow-1-2.tmp").symlink_to(outside)

    sweep_user_data(tmp_path / "data", now_ms=1_700_000_000_000)

    assert outside.exists()
    assert (tmp_path / "data" / ".creonow-1-2.tmp").is_symlink()


async def test_a_daemon_that_starts_sweeps_what_was_left(tmp_path: Path) -> None:
    leftover = plant(tmp_path / "budgets" / ".creonow-12-3.tmp")
    staged = plant(tmp_path / "context" / ".import" / "imp_0a1b2c" / "0")
    foreign = plant(tmp_path / "context" / ".import" / "notes.txt")

    async with run_daemon(tmp_path):
        with anyio.fail_after(60):
            while leftover.exists() or staged.parent.exists():  # noqa: ASYNC110 - another process
                await anyio.sleep(0.02)

    assert foreign.exists()


def test_why_nothing_is_at_a_path_is_found_without_the_system_s_own_reason(book: Path) -> None:
    """Windows says of each that it was not found."""
    (book / "chapter.md").touch()

    reasons = {
        "nowhere": "missing",
        "nowhere/else": "missing",
        "chapter.md/inside": "not_a_folder",
        "长" * 300: "invalid",
    }

    assert {name: absence_reason(book / name) for name in reasons} == reasons


@needs_links
def test_why_nothing_is_behind_a_link_is_found_as_well(book: Path) -> None:
    (book / "loop").symlink_to(book / "loop")
    (book / "dangling").symlink_to(book / "nowhere")

    reasons = {"dangling": "missing", "loop": "not_a_folder", "loop/inside": "not_a_folder"}

    assert {name: absence_reason(book / name) for name in reasons} == reasons
