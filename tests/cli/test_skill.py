import json
from pathlib import Path

import pytest

from creonowd.cli import main

GOOD = "---\nname: 好\n---\n"
BAD = "---\nname: 坏\ncontext_rules:\n  surounding: 5\n---\n"


def put(path: Path, content: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")
    return path


def test_a_good_skill_passes(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    file = put(tmp_path / "SKILL.md", GOOD)

    status = main(["skill", "lint", str(file)])

    assert status == 0
    assert capfdbinary.readouterr().out.decode() == f"{file}: ok\n"


def test_a_fault_is_reported_with_file_line_and_key(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    file = put(tmp_path / "SKILL.md", BAD)

    status = main(["skill", "lint", str(file)])

    assert status == 1
    assert capfdbinary.readouterr().out.decode() == (
        f"{file}:4: context_rules.surounding: `surounding` is not known;"
        " did you mean `surrounding`?\n"
    )


def test_faults_are_in_the_language_of_the_terminal(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    bad, good = put(tmp_path / "a" / "SKILL.md", BAD), put(tmp_path / "b" / "SKILL.md", GOOD)

    main(["skill", "lint", str(tmp_path)])
    shown = capfdbinary.readouterr().out.decode()
    main(["skill", "lint", str(tmp_path), "--json"])
    report = json.loads(capfdbinary.readouterr().out)
    status = main(["skill", "lint", str(tmp_path / "none")])

    assert shown == (
        f"{bad}:4: context_rules.surounding: `surounding` 不认识；是否想写 `surrounding`？\n"
        f"{good}: 没有问题\n"
    )
    assert report[0]["faults"] == [
        {
            "key": "context_rules.surounding",
            "message": "`surounding` 不认识；是否想写 `surrounding`？",
            "line": 4,
        }
    ]
    assert status == 1
    assert "没有技能" in capfdbinary.readouterr().err.decode()


def test_a_project_is_linted_as_the_daemon_would_read_it(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    put(tmp_path / "README.md", "no skill")
    skills = tmp_path / ".creonow" / "skills"
    put(skills / "a" / "SKILL.md", GOOD)
    put(skills / "a" / "notes.md", "no skill")
    put(skills / "b.md", BAD)

    status = main(["skill", "lint", str(tmp_path), "--json"])

    report = json.loads(capfdbinary.readouterr().out)
    assert status == 1
    assert [(Path(one["path"]).name, len(one["faults"])) for one in report] == [
        ("SKILL.md", 0),
        ("b.md", 1),
    ]


def test_a_place_without_skills_is_an_error(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    status = main(["skill", "lint", str(tmp_path / "nowhere")])

    assert status == 1
    assert "There is no skill" in capfd.readouterr().err
