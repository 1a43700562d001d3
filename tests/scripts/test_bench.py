"""`scripts/bench`: its usage, and how it replaces one section of docs/benchmarks.md."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.measurements import BENCHMARKS, PAGE, conditions, replace_section

ROOT = Path(__file__).resolve().parents[2]
TWO = "# Page\n\n## one\n\nWhy.\n\n<!-- begin one -->\nold\n<!-- end one -->\n\n## two\n\nkept\n"


def bench(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "scripts" / "bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)


@pytest.mark.parametrize("argument", ["-h", "--help"])
def test_help_lists_every_benchmark_on_a_line(argument: str) -> None:
    ran = bench(argument)

    assert ran.returncode == 0
    assert re.findall(r"^  (\w+)  +\S", ran.stdout, re.MULTILINE) == list(BENCHMARKS)


@pytest.mark.parametrize("arguments", [(), ("nonsense",), ("novel",)])
def test_an_unknown_name_is_a_mistake(arguments: tuple[str, ...]) -> None:
    ran = bench(*arguments)

    assert ran.returncode == 2
    assert "usage: scripts/bench NAME" in ran.stderr


def test_every_benchmark_has_a_module_and_a_section() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert [name for name in BENCHMARKS if not (ROOT / "benchmarks" / f"{name}.py").is_file()] == []
    assert re.findall(r"^<!-- begin (\w+) -->$", page, re.MULTILINE) == sorted(BENCHMARKS)
    for name in BENCHMARKS:
        section = page.partition(f"<!-- begin {name} -->\n")[2].partition(f"<!-- end {name} -->")[0]
        assert re.match(rf"`scripts/bench {name}\b.*` on \d+ cores, .+ Python \d", section)


def test_every_table_on_the_page_is_generated() -> None:
    generated = r"<!-- begin (\w+) -->.*?<!-- end \1 -->"

    rest = re.sub(generated, "", PAGE.read_text(encoding="utf-8"), flags=re.DOTALL)

    assert "\n|" not in rest


def test_only_what_is_between_the_markers_is_replaced() -> None:
    assert replace_section(TWO, "one", "\nnew\n\n") == TWO.replace("old", "new")


def test_a_benchmark_without_a_section_gets_one_at_the_end() -> None:
    page = replace_section(TWO, "three", "new")

    assert page == f"{TWO}\n## three\n\n<!-- begin three -->\nnew\n<!-- end three -->\n"


def test_a_section_without_an_end_is_left_alone() -> None:
    with pytest.raises(ValueError, match="no <!-- end one -->"):
        replace_section(TWO.replace("<!-- end one -->", ""), "one", "new")


def test_a_section_names_its_command_the_machine_and_the_day() -> None:
    stated = conditions("faults", ["12", "7"], "Python 3.11.7")

    assert re.fullmatch(
        r"`scripts/bench faults 12 7` on \d+ cores, \w+ \w+, Python 3\.11\.7, \d{4}-\d\d-\d\d\.",
        stated,
    )
