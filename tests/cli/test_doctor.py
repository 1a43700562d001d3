"""`creonowd doctor`: what is wrong is found, with a remedy."""

import gzip
import json
import os
import stat
from hashlib import sha256
from pathlib import Path

import pytest

from creonowd.cli import doctor, main
from creonowd.retrieval import document_list
from creonowd.tokens.tables import published_table
from creonowd.workspace import watcher
from testing.clients import run_daemon
from testing.privileges import without_privileges
from tests.cli.commands import creonowd, creonowd_process


def test_doctor_lists_settings_and_finds_nothing_wrong(tmp_path: Path) -> None:
    ran = creonowd(tmp_path, "doctor", "--json", CREONOW_MAX_BATCH="7")
    report = json.loads(ran.stdout)

    assert ran.returncode == 0
    batch = next(s for s in report["settings"] if s["name"] == "maxBatch")
    assert batch == {
        "name": "maxBatch",
        "value": 7,
        "origin": "environment",
        "description": "requests in one batch",
    }
    assert all(finding["state"] != "bad" for finding in report["findings"])


def test_doctor_lists_the_settings_for_people_too(tmp_path: Path) -> None:
    report = creonowd(tmp_path, "doctor", "--settings", CREONOW_MAX_BATCH="7").stdout.decode()

    assert "  maxBatch = 7 (environment)  requests in one batch\n" in report
    assert "  aiProvider = fake (default)  who answers ai:skill:run\n" in report


def test_doctor_names_a_variable_that_sets_nothing(tmp_path: Path) -> None:
    report = json.loads(creonowd(tmp_path, "doctor", "--json", CREONOW_MAX_BACH="7").stdout)

    (finding,) = (f for f in report["findings"] if f["part"] == "environment")
    assert finding["found"].startswith("CREONOW_MAX_BACH (did you mean CREONOW_MAX_BATCH?)")


def test_doctor_sends_nobody_to_overwrite_what_a_newer_version_wrote(tmp_path: Path) -> None:
    (tmp_path / "projects.json").write_text('{"version": 99, "projects": []}', encoding="utf-8")

    report = json.loads(creonowd(tmp_path, "doctor", "--json").stdout)

    found = {f["part"]: f for f in report["findings"]}
    assert found["projects.json"]["state"] == "bad"
    assert "leaves the file as it is" in found["projects.json"]["remedy"]
    assert "stored files" not in found


def test_doctor_recognises_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way", encoding="utf-8")

    report = json.loads(creonowd(tmp_path / "file", "doctor", "--json").stdout)

    (finding,) = (f for f in report["findings"] if f["part"] == "user data")
    assert finding["found"].endswith("file is not a folder")


async def test_doctor_sees_the_running_daemon(tmp_path: Path) -> None:
    async with run_daemon(tmp_path) as process:
        report = json.loads(creonowd_process(tmp_path, "doctor", "--json").stdout)

    (finding,) = (f for f in report["findings"] if f["part"] == "daemon")
    assert str(process.pid) in finding["found"]


def test_doctor_reports_what_is_wrong_and_how_to_fix_it(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("{", encoding="utf-8")
    (tmp_path / "novel").mkdir()
    (tmp_path / "novel" / ".creonow").write_text("in the way", encoding="utf-8")

    ran = creonowd(tmp_path, "doctor", "--json", "--project", str(tmp_path / "novel"))

    bad = {f["part"]: f for f in json.loads(ran.stdout)["findings"] if f["state"] == "bad"}
    assert ran.returncode == 1
    assert set(bad) == {"settings", ".creonow"}
    assert all(finding["remedy"] for finding in bad.values())


def test_doctor_looks_into_every_file_that_an_assembly_reads(tmp_path: Path) -> None:
    tree = tmp_path / "novel" / ".creonow"
    for name in ("rules", "settings", "skills/torn"):
        (tree / name).mkdir(parents=True)
    (tree / "rules/constraints.json").write_text('{"version": 1, "items": [5]}', encoding="utf-8")
    (tree / "rules/terminology.json").write_text("{", encoding="utf-8")
    (tree / "settings/memory.json").write_text('{"version": 1, "rules": []}', encoding="utf-8")
    (tree / "chat.json").write_text("{", encoding="utf-8")
    (tree / "skills/torn/SKILL.md").write_text("no front matter", encoding="utf-8")

    ran = creonowd(tmp_path, "doctor", "--json", "--project", str(tree.parent))

    bad = {f["part"]: f for f in json.loads(ran.stdout)["findings"] if f["state"] == "bad"}
    assert ran.returncode == 1
    assert set(bad) == {
        ".creonow/rules/constraints.json",
        ".creonow/rules/terminology.json",
        ".creonow/skills/torn/SKILL.md",
        ".creonow/chat.json",
    }
    assert all(finding["found"] and finding["remedy"] for finding in bad.values())


def test_doctor_knows_every_package_and_finds_a_damaged_table(tmp_path: Path) -> None:
    (tmp_path / "o200k_base.tokens").write_bytes(b"torn")

    ran = creonowd(tmp_path, "doctor", "--json", CREONOW_TOKENIZER_TABLES=str(tmp_path))

    found = {f["part"]: f["state"] for f in json.loads(ran.stdout)["findings"]}
    assert found["o200k_base"] == found["cl100k_base"] == "bad"
    assert {"msgspec", "tiktoken", "google-re2", "websockets", "regex"} <= found.keys()
    assert "openai" not in found


def test_doctor_lists_the_tables_that_the_user_brought(tmp_path: Path) -> None:
    folder = tmp_path / "tokenizers"
    folder.mkdir()
    table = published_table([bytes([byte]) for byte in range(256)])
    whole = {"pat_str": r"\s+|[^\s]+", "sha256": sha256(table).hexdigest()}
    for name, description in (("kimi_k3", whole), ("llama3", whole | {"sha256": "0" * 64})):
        (folder / f"{name}.json").write_text(json.dumps(description), encoding="utf-8")
        (folder / f"{name}.tiktoken.gz").write_bytes(gzip.compress(table))

    english = creonowd(tmp_path, "doctor", "--json")
    chinese = creonowd(tmp_path, "doctor", "--json", LC_ALL="zh_CN.UTF-8")

    found = {f["part"]: f for f in json.loads(english.stdout)["findings"]}
    assert found["tokenizers/kimi_k3"]["state"] == "ok"
    assert found["tokenizers/llama3"]["state"] == "bad"
    assert "SHA-256 differ" in found["tokenizers/llama3"]["found"]
    (said,) = (
        f for f in json.loads(chinese.stdout)["findings"] if f["part"] == "tokenizers/llama3"
    )
    assert "与说明不符" in said["found"]


def test_doctor_recognises_what_a_killed_daemon_left(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "endpoint.json").write_text(
        '{"version":1,"pid":1,"endpoints":[]}', encoding="utf-8"
    )

    report = json.loads(creonowd(tmp_path, "doctor", "--json").stdout)

    (finding,) = (f for f in report["findings"] if f["part"] == "daemon")
    assert "left an endpoint file behind" in finding["found"]


def test_doctor_reports_a_daemon_that_was_killed_before_it_had_logged_anything(
    tmp_path: Path,
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "daemon.pid").write_text("4711", encoding="ascii")

    report = json.loads(creonowd(tmp_path, "doctor", "--json").stdout)

    (finding,) = (f for f in report["findings"] if f["part"] == "last end")
    assert "with pid 4711 was killed" in finding["found"]


def test_doctor_reports_that_it_is_not_installed_as_a_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources that were never installed, or may not be read by this user."""
    monkeypatch.setattr(doctor, "PACKAGE", "creonowd-nobody-installed")

    failed = main(["doctor", "--json", "--user-data", str(tmp_path)])

    findings = json.loads(capsys.readouterr().out)["findings"]
    (finding,) = (f for f in findings if f["part"] == "creonowd-nobody-installed")
    assert (failed, finding["state"], finding["found"]) == (1, "bad", "not installed")


@pytest.mark.skipif(os.name == "nt", reason="rights are not modes on Windows")
def test_doctor_reports_user_data_that_it_may_not_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has looked before: what it is made of may lie where only root can read."""
    main(["doctor", "--json", "--user-data", str(tmp_path)])
    with without_privileges() as place:
        capsys.readouterr()
        place.chmod(0o000)
        failed = main(["doctor", "--json", "--user-data", str(place)])
        place.chmod(0o700)

    report = json.loads(capsys.readouterr().out)
    (finding,) = (f for f in report["findings"] if f["part"] == "user data")
    assert (failed, finding["state"]) == (1, "bad")
    assert "cannot be read" in finding["found"]


@pytest.mark.skipif(os.name == "nt", reason="rights are not modes on Windows")
@pytest.mark.parametrize(("mode", "is_chinese"), [(0o777, False), (0o750, False), (0o755, True)])
async def test_doctor_reports_user_data_that_lies_open_and_leaves_it_so(
    tmp_path: Path, mode: int, *, is_chinese: bool
) -> None:
    language = "zh_CN.UTF-8" if is_chinese else "C"
    async with run_daemon(tmp_path):
        tmp_path.chmod(mode)
        ran = creonowd_process(tmp_path, "doctor", "--json", LC_ALL=language)
        left = stat.S_IMODE(tmp_path.stat().st_mode)

    (finding,) = (f for f in json.loads(ran.stdout)["findings"] if f["part"] == "user data")
    assert (ran.returncode, finding["state"], left) == (1, "bad", mode)
    assert f"chmod 700 {tmp_path}" in finding["found"]
    assert ("开放" in finding["found"]) is is_chinese


@pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="only root can leave files to others"
)
def test_doctor_names_what_another_user_left_in_user_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It has looked before: what it is made of may lie where only root can read."""
    main(["doctor", "--json", "--user-data", str(tmp_path)])
    with without_privileges() as place:
        os.seteuid(0)
        (place / "left").touch()
        os.chown(place / "left", 1234, 1234)
        os.seteuid(place.stat().st_uid)
        place.chmod(0o750)
        capsys.readouterr()
        failed = main(["doctor", "--json", "--user-data", str(place)])
        mode = stat.S_IMODE(place.stat().st_mode)

    findings = json.loads(capsys.readouterr().out)["findings"]
    (finding,) = (f for f in findings if f["part"] == "user data")
    assert (failed, finding["state"], mode) == (1, "bad", 0o750)
    assert f"{place / 'left'} belongs to another user" in finding["found"]


def test_doctor_names_what_is_unclear_about_the_order_of_the_story(tmp_path: Path) -> None:
    for name in ("第三章 旧", "03 新", "插曲"):
        (tmp_path / f"{name}.md").write_text("雨", encoding="utf-8")

    ran = creonowd(tmp_path / "data", "doctor", "--json", "--project", str(tmp_path))

    found = [f for f in json.loads(ran.stdout)["findings"] if f["part"] == "story"]
    assert ran.returncode == 0
    assert found[0]["found"] == "3 documents in order, from 03 新.md to 插曲.md"
    assert [(f["state"], f["found"].partition(": ")[2]) for f in found[1:]] == [
        ("note", "03 新.md, 第三章 旧.md"),
        ("note", "插曲.md"),
    ]
    assert "story.json" in found[1]["remedy"]


def test_doctor_names_places_that_the_story_does_not_have(tmp_path: Path) -> None:
    files = {
        "第1章.md": "# 第1章\n\n雨",
        "第2章.md": "# 第2章\n\n雨",
        ".creonow/characters/林远.md": "---\nuntil: 大火之夜\n---\n少年。",
        ".creonow/characters/苏晴.md": "---\ninject: mentioned\nfrom: 无名处\n---\n少女。",
        ".creonow/characters/李小明.md": "掌柜。",
        ".creonow/characters/王小明.md": "小二。",
        ".creonow/settings/城.md": "---\nfrom: 第2章\n---\n城。",
        ".creonow/threads/信.md": "---\nplanted: 第1章\ndue: 重逢\n---\n信。",
        ".creonow/threads/刀.md": "---\nplanted: 第1章\ndue: 第1章\n---\n刀。",
    }
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, encoding="utf-8")

    ran = creonowd(tmp_path / "data", "doctor", "--json", "--project", str(tmp_path))

    notes = [f for f in json.loads(ran.stdout)["findings"] if f["state"] == "note"]
    unclear = [f["found"] for f in notes if f["part"] == "story"]
    (overdue,) = (f["found"] for f in notes if f["part"] == "threads")
    (ambiguous,) = (f["found"] for f in notes if f["part"] == "characters")
    assert ran.returncode == 0
    assert len(unclear) == 3
    for path, place in (("林远", "大火之夜"), ("苏晴", "无名处"), ("信", "重逢")):
        assert any(f"{path}.md" in found and place in found for found in unclear)
    assert "刀.md" in overdue
    assert "信.md" not in overdue
    assert "小明" in ambiguous


def test_doctor_finds_a_story_file_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / ".creonow").mkdir()
    (tmp_path / ".creonow/story.json").write_text('{"order": "1.md"}', encoding="utf-8")

    ran = creonowd(tmp_path / "data", "doctor", "--json", "--project", str(tmp_path))

    found = [f for f in json.loads(ran.stdout)["findings"] if f["part"] == "story"]
    assert ran.returncode == 1
    assert found[0]["state"] == "bad"
    assert "Fix it" in found[0]["remedy"]


BROKEN = {
    "characters/林.md": b"---\nname: [\n---\nx",
    "characters/苏.md": b"---\nname: a\ninject: sometimes\n---\nx",
    "rules/terminology.json": b'{\n  "terms": 5\n}',
    "settings/world.md": b"\xff\xfe\xfd abc\x81",
    "settings/memory.json": b"[]",
    "skills/broken/SKILL.md": b"no front matter",
    "skills/alone.md": b"---\nname: 5\n---\n",
}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    tree = tmp_path / "novel" / ".creonow"
    for name, data in BROKEN.items():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(data)
    (tree / "characters/陈.md").write_text("陈默，话少。\n", encoding="utf-8")
    return tree.parent


def test_doctor_reads_a_project_as_an_assembly_does(tmp_path: Path, broken: Path) -> None:
    ran = creonowd(tmp_path, "doctor", "--json", "--project", str(broken))

    bad = {f["part"]: f["found"] for f in json.loads(ran.stdout)["findings"] if f["state"] == "bad"}
    assert ran.returncode == 1
    assert bad.keys() == {f".creonow/{name}" for name in BROKEN}
    assert bad[".creonow/characters/林.md"].startswith("line 2: its front matter has a fault")
    assert bad[".creonow/characters/苏.md"].startswith("line 3: `inject` must be")
    assert bad[".creonow/rules/terminology.json"].startswith("line 2: `terms` must be a list")
    assert "UTF-8" in bad[".creonow/settings/world.md"]


def test_doctor_prints_problems_first_and_sums_up_what_is_fine(
    tmp_path: Path, broken: Path
) -> None:
    ran = creonowd(tmp_path, "doctor", "--project", str(broken), LANG="C")

    report = ran.stdout.decode()
    signs = [line[0] for line in report.splitlines() if not line.startswith(" ")]
    assert signs == ["✗"] * len(BROKEN) + ["·"] + ["✓"]
    assert " parts are fine: python, " in report.splitlines()[-1]
    assert "\x1b[" not in report


@pytest.mark.parametrize(
    ("variables", "fine"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "项正常：python"),
        ({"LANG": "en_GB.UTF-8", "LC_ALL": "zh_TW"}, "项正常：python"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "parts are fine: python"),
        ({"LANG": "fr_FR.UTF-8"}, "parts are fine: python"),
        ({}, "parts are fine: python"),
    ],
)
def test_doctor_speaks_the_language_of_the_terminal(
    tmp_path: Path, variables: dict[str, str], fine: str
) -> None:
    environment = {"LANG": "", "LC_ALL": "", "LC_MESSAGES": ""} | variables

    report = creonowd(tmp_path, "doctor", stdin=b"", **environment).stdout.decode()

    assert fine in report
    assert ("未运行" in report) is fine.startswith("项")


def test_doctor_says_what_a_huge_project_leaves_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(document_list, "MAX_DOCUMENTS", 1)
    monkeypatch.setattr(watcher, "MAX_FOLDERS", 1)
    (tmp_path / "novel" / "deep").mkdir(parents=True)
    for name in ("a.md", "b.md"):
        (tmp_path / "novel" / name).write_text("雪", encoding="utf-8")
    (tmp_path / "novel" / ".ignore").write_bytes(b"x\n" * 40_000)

    main(["doctor", "--json", "--user-data", str(tmp_path), "--project", f"{tmp_path}/novel"])
    findings = json.loads(capsys.readouterr().out)["findings"]

    found = {f["part"]: f for f in findings if f["state"] == "note"}
    assert "only the 1 documents nearest" in found["documents"]["found"]
    assert "64 KiB together" in found[".ignore"]["found"]
    assert "watched" in found["watching"]["found"]
