"""`scripts/compare`: another checkout is really another one, and what differs is found."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts.checkouts.compare import main
from scripts.checkouts.daemon import LAUNCH, Daemon, environment
from scripts.checkouts.differences import compare, contract_change, table
from scripts.checkouts.record import Item
from scripts.checkouts.worlds import draw

ROOT = Path(__file__).resolve().parents[2]
SKILL = "builtin:continue"


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A checkout in which one sentence of one skill is another."""
    shutil.copytree(ROOT / "creonowd", tmp_path / "other" / "creonowd")
    (skill,) = (tmp_path / "other").rglob("continue/SKILL.md")
    text = skill.read_text(encoding="utf-8")
    skill.write_text(text.replace("从光标处续写正文", "从光标处接着写", 1), encoding="utf-8")
    return tmp_path / "other"


def asked(checkout: Path, user_data: Path) -> list[Item]:
    with Daemon(checkout, user_data) as daemon:
        reply = daemon.request("skill:read", {"skillId": SKILL})
        return [Item("skills", "skill:read", reply)]


def test_a_line_that_was_changed_in_the_other_checkout_is_found(
    tmp_path: Path, other: Path
) -> None:
    ours, theirs = asked(ROOT, tmp_path / "a"), asked(other, tmp_path / "b")

    (section,) = compare(ours, theirs)

    assert (section.items, section.differing) == (1, 1)
    assert "接着写" in section.first[0]
    assert compare(ours, ours)[0].differing == 0


def test_a_folder_without_the_package_does_not_run_the_installed_one(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, str(LAUNCH), str(tmp_path), "--version"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )

    assert ran.returncode == 1
    assert f"not {tmp_path / 'creonowd'}" in ran.stderr


def test_what_is_neither_folder_nor_revision_is_refused() -> None:
    with pytest.raises(SystemExit, match="neither a folder nor a revision"):
        main(["no-such-revision"])


def test_the_same_worlds_are_drawn_each_time() -> None:
    first, second = draw((ROOT,), 5), draw((ROOT,), 5)

    assert first == second
    assert len(first) == 5


@pytest.mark.parametrize(
    ("here", "there", "found"),
    [
        ({"prompt": "one two"}, {"prompt": "one too"}, ".prompt at character 5"),
        ({"tokens": 1}, {"tokens": 1.0}, ".tokens: 1 here, 1.0 there"),
        ({"warnings": ["a"]}, {"warnings": []}, ".warnings has 1 here, 0 there"),
        ({"a": 1}, {"a": 1, "b": 2}, ".b is only there"),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, "the order of fields differs"),
        (
            {"a": "x_" + "1" * 20, "b": "x_" + "1" * 20},
            {"a": "x_" + "1" * 20, "b": "x_" + "2" * 20},
            ".b",
        ),
        ({"a": {"nowMs": 1}}, {"a": {}}, ".a.nowMs is only here"),
    ],
)
def test_a_difference_is_named_by_its_place(here: Any, there: Any, found: str) -> None:
    (section,) = compare([Item("s", "l", here)], [Item("s", "l", there)])

    assert section.differing == 1
    assert found in section.first[0]
    assert found in table([section])


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ({"nowMs": 1}, {"nowMs": 2}),
        ({"text": f"see ctx_{'1' * 20}"}, {"text": f"see ctx_{'2' * 20}"}),
        ({"revision": "abc"}, {"revision": "def"}),
    ],
)
def test_times_and_ids_of_one_run_are_no_difference(here: Any, there: Any) -> None:
    (section,) = compare([Item("s", "l", here)], [Item("s", "l", there)])

    assert section.differing == 0


def test_a_question_that_only_one_side_was_asked_is_a_difference() -> None:
    (section,) = compare([Item("s", "a", {}), Item("s", "a", {})], [Item("s", "a", {})])

    assert (section.items, section.differing) == (2, 1)


def test_a_contract_may_differ_by_descriptions_only() -> None:
    contract = json.loads((ROOT / "protocol" / "openrpc.json").read_bytes())
    described = json.loads(json.dumps(contract))
    described["methods"][0]["summary"] = "Something else."
    described["methods"][0]["examples"] = []
    described["components"]["schemas"]["Layer"]["x-enumDescriptions"] = {}
    changed = json.loads(json.dumps(contract))
    changed["methods"][0]["x-role"] = "nobody"

    news = {
        name: contract_change([Item("contract", "", contract)], [Item("contract", "", other)])
        for name, other in (("same", contract), ("described", described), ("changed", changed))
    }

    assert news["same"] == "The contract is the same, byte for byte."
    assert news["described"] == "The contract differs only by descriptions."
    assert news["changed"] == "The contract differs by more than descriptions."
    sections = compare([Item("contract", "", contract)], [Item("contract", "", changed)])
    assert [section.differing for section in sections] == [1]
