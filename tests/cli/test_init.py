"""`creonowd init`: a commented folder that costs nothing before it is edited."""

from pathlib import Path

import pytest

from creonowd.cli import main
from creonowd.cli.check import file_uses
from creonowd.cli.init import LANGUAGES, template
from testing.novels import write_files


@pytest.fixture(autouse=True)
def english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "C")


def init(folder: Path, *words: str) -> int:
    return main(["init", str(folder), "--user-data", str(folder.parent / "data"), *words])


def files(root: Path) -> dict[str, bytes]:
    found = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_folder_is_commented_and_sends_nothing(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], language: str
) -> None:
    novel = tmp_path / "小说 novel"

    status = init(novel, "--language", language)

    written = files(novel)
    said = capfd.readouterr().out
    assert status == 0
    assert all(f"+ {path}\n" in said for path in written)
    assert f'"language": "{language}"'.encode() in written[".creonow/project.json"]
    seen = {use.path for use in file_uses(novel, tmp_path / "data") if use.tokens}
    assert [path for path in seen if "/threads/" not in path] == []
    assert main(["check", str(novel), "--user-data", str(tmp_path / "data")]) == 0


def test_both_languages_have_the_same_files() -> None:
    english, chinese = (
        {name.rpartition("/")[0] + name[-3:] for name in template(one)} for one in LANGUAGES
    )

    assert english == chinese
    assert {name.partition("/")[0] for name in template("en")} >= {"rules", "threads", "skills"}


def test_nothing_is_overwritten_and_it_says_what_was_there(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    novel = tmp_path / "novel"
    own = {".creonow/rules/style.md": "Short.\r\n", "chapters/01.md": "Night.\n"}
    write_files(novel, own)

    first, said = init(novel), capfd.readouterr().out
    before = files(novel)
    second, again = init(novel), capfd.readouterr().out

    assert (first, second) == (0, 0)
    assert before[".creonow/rules/style.md"] == b"Short.\r\n"
    assert "= .creonow/rules/style.md" in said
    assert ".creonow/project.json" not in before
    assert files(novel) == before
    assert "nothing was written" in again
    assert "+ " not in again


@pytest.mark.parametrize(
    ("folder", "code"),
    [("data", "INVALID_ARGUMENT"), ("a/b", "NOT_FOUND"), ("file", "INVALID_ARGUMENT")],
    ids=["user data", "parent missing", "a file"],
)
def test_what_may_not_be_a_project_is_refused_and_left_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], folder: str, code: str
) -> None:
    (tmp_path / "file").touch()

    status = main(["init", str(tmp_path / folder), "--user-data", str(tmp_path / "data")])

    assert status == 1
    assert code in capfd.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_in_the_way_of_the_folder_is_named(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    novel = tmp_path / "novel"
    write_files(novel, {".creonow": "mine"})

    assert init(novel) == 1
    assert ".creonow" in capfd.readouterr().err
    assert files(novel) == {".creonow": b"mine"}
