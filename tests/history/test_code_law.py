"""`code_law.md`: read once, read again when it changes, and never followed out of the project."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from creonowd.clock import SystemClock
from creonowd.history.code_law import GENERATE, CodeLaws

LONG_AGO = 1_600_000_000
WORDS = "8794d2284a301a8fb67187384dc949058102a72153725ad2f46b2a0edb16d1a7"


def write(path: Path, text: str, seconds: int = LONG_AGO) -> None:
    path.write_bytes(text.encode())
    os.utime(path, (seconds, seconds))


@pytest.mark.requirement("CB-034", "CB-052")
def test_a_file_that_has_not_changed_is_read_once(tmp_path: Path) -> None:
    laws = CodeLaws(SystemClock())
    write(tmp_path / "code_law.md", "# One\r\n")

    laws_read = [laws.current(tmp_path) for _ in range(5)]

    assert {law.text for law in laws_read} == {"# One\n"}
    assert laws.reads == 1


@pytest.mark.requirement("CB-034", "CB-052")
def test_a_file_that_has_changed_is_read_again_whatever_its_time_says(tmp_path: Path) -> None:
    laws = CodeLaws(SystemClock())
    path = tmp_path / "code_law.md"
    write(path, "# One\n")
    laws.current(tmp_path)

    write(path, "# Two\n")
    second = laws.current(tmp_path)
    path.unlink()
    gone = laws.current(tmp_path)
    write(path, "# Three\n")
    third = laws.current(tmp_path)

    assert second.text == "# Two\n"
    assert not gone.exists
    assert third.text == "# Three\n"
    assert third.sha256 != second.sha256


@pytest.mark.skipif(os.name == "nt", reason="Windows asks for rights to make a link")
@pytest.mark.parametrize("target", ["outside.md", "nowhere.md"])
def test_a_link_out_of_the_project_is_a_problem_and_not_read(tmp_path: Path, target: str) -> None:
    """It is there: an agent asked to generate the file would write through the link."""
    book = tmp_path / "book"
    book.mkdir()
    (tmp_path / "outside.md").write_text("not yours", encoding="utf-8")
    (book / "code_law.md").symlink_to(tmp_path / target)

    law = CodeLaws(SystemClock()).current(book)

    assert law.exists
    assert law.text is None
    assert "link" in law.problem
    assert str(tmp_path) not in law.problem


def test_a_folder_of_that_name_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "code_law.md").mkdir()

    law = CodeLaws(SystemClock()).current(tmp_path)

    assert law.exists
    assert law.text is None
    assert law.problem


@pytest.mark.requirement("CB-055")
def test_the_prompt_is_the_specification_word_for_word() -> None:
    spelled = " ".join(GENERATE.split()).encode()

    assert sha256(spelled).hexdigest() == WORDS
