"""The manifest holds: rows are well formed, done rows are named by tests, tests name real rows.

The check itself is tried against small made-up repositories, so that it is known to fail.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.requirements.manifest import PLACE, read_manifest
from tests.requirements.table import render

ROOT = Path(__file__).resolve().parents[2]
ENGINE = 2

ROW = """
seed = 2
title = "Context engine"

[[row]]
id = "CE-001"
kind = "must"
section = "Tokens"
says = "Counts are exact"
shown = "unit"
issue = 7
done = true
"""

OPEN = 'open = "measured, and missed"\ndone = false'

TEST = """
import pytest

@pytest.mark.requirement("CE-001")
def test_counts_are_exact():
    assert True
"""

BENCH = ROW.replace('"unit"', '"bench"\nbench = "benchmarks/tokens.py"')


def test_the_manifest_and_the_tests_agree() -> None:
    assert read_manifest(ROOT).problems == []


def test_all_five_seeds_are_listed() -> None:
    assert sorted(seed.seed for seed in read_manifest(ROOT).seeds) == [1, 2, 3, 4, 5]


def test_every_scenario_of_the_engine_is_a_story_named_after_it() -> None:
    stories = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "e2e").glob("*.py"))
    (engine,) = [seed for seed in read_manifest(ROOT).seeds if seed.seed == ENGINE]

    titles = [row.section.partition(": ")[2] for row in engine.row if row.kind == "scenario"]

    assert titles
    assert [title for title in titles if f'"""{title}' not in stories] == []


def test_the_table_has_a_line_for_every_row_with_its_tests() -> None:
    manifest = read_manifest(ROOT)

    lines = render(manifest).splitlines()

    for row in (row for seed in manifest.seeds for row in seed.row):
        (line,) = [line for line in lines if line.startswith(f"| {row.id} | ")]
        tests = {mention.test for mention in manifest.mentions if mention.id == row.id}
        assert all(test in line for test in tests) or not row.done


def test_the_table_is_printed_or_written_to_a_path(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.requirements.table"]
    page = tmp_path / "table.md"

    printed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run([*command, str(page)], cwd=ROOT, check=True)

    assert printed.decode() == page.read_bytes().decode() == render(read_manifest(ROOT))


def test_a_done_row_that_a_test_names_is_fine(tmp_path: Path) -> None:
    assert problems(tmp_path, ROW, {"tests/test_tokens.py": TEST}) == []


def test_one_case_of_a_table_may_name_a_row(tmp_path: Path) -> None:
    mark = 'pytest.mark.requirement("CE-001")'
    case = f'@pytest.mark.parametrize("text", [pytest.param("a", marks={mark})])'

    assert problems(tmp_path, ROW, {"tests/test_tokens.py": TEST.replace(f"@{mark}", case)}) == []


def test_a_done_row_without_a_test_is_a_problem(tmp_path: Path) -> None:
    assert problems(tmp_path, ROW) == ["CE-001: is marked done, but no test names it"]


def test_an_open_row_needs_no_test_but_says_why(tmp_path: Path) -> None:
    assert problems(tmp_path, ROW.replace("done = true", OPEN)) == []
    assert problems(tmp_path, ROW.replace("true", "false")) == [
        "CE-001: `open` belongs to rows that are not done, and to all of them"
    ]


def test_a_done_row_is_not_open_too(tmp_path: Path) -> None:
    both = ROW.replace("done = true", OPEN.replace("false", "true"))

    assert problems(tmp_path, both, {"tests/test_tokens.py": TEST}) == [
        "CE-001: `open` belongs to rows that are not done, and to all of them"
    ]


def test_a_test_that_names_no_row_is_a_problem(tmp_path: Path) -> None:
    both = TEST.replace('"CE-001"', '"CE-001", "CE-404"')

    assert problems(tmp_path, ROW, {"e2e/test_story.py": both}) == [
        "e2e/test_story.py: test_counts_are_exact names CE-404, which is no row"
    ]


@pytest.mark.parametrize(
    "source",
    [
        TEST.replace("def test_counts", "def counts"),
        TEST.replace("def test_counts", "class Test").replace("():", ":"),
        TEST.replace("@pytest", "@pytest.mark.skip\n@pytest"),
        TEST.replace("@pytest", "@pytest.mark.xfail(reason='later')\n@pytest"),
        TEST.replace('"CE-001"', "ID"),
    ],
    ids=["not a test", "not a function", "skipped", "expected to fail", "not a literal"],
)
def test_a_mark_on_what_does_not_run_shows_nothing(tmp_path: Path, source: str) -> None:
    found = problems(tmp_path, ROW, {"tests/test_tokens.py": source})

    assert "CE-001: is marked done, but no test names it" in found
    assert any("this mark shows nothing" in problem for problem in found)


def test_a_mark_in_a_file_that_pytest_does_not_collect_shows_nothing(tmp_path: Path) -> None:
    found = problems(tmp_path, ROW, {"tests/tokens.py": TEST})

    assert "CE-001: is marked done, but no test names it" in found


def test_a_mark_inside_a_string_is_not_a_mark(tmp_path: Path) -> None:
    found = problems(tmp_path, ROW, {"tests/test_tokens.py": f'TEXT = """{TEST}"""\n'})

    assert found == ["CE-001: is marked done, but no test names it"]


def test_a_javascript_test_names_rows_in_a_comment(tmp_path: Path) -> None:
    source = "// requirement: CE-001, CE-404\ntest('counts are exact', () => {});\n"

    assert problems(tmp_path, ROW, {"protocol/tests/tokens.test.mjs": source}) == [
        "protocol/tests/tokens.test.mjs: protocol/tests/tokens.test.mjs names CE-404, which is no row"
    ]


def test_installed_javascript_is_not_ours(tmp_path: Path) -> None:
    source = "// requirement: CE-001\n"

    found = problems(tmp_path, ROW, {"protocol/node_modules/x/tokens.test.mjs": source})

    assert found == ["CE-001: is marked done, but no test names it"]


def test_a_bench_row_needs_its_script(tmp_path: Path) -> None:
    assert problems(tmp_path, BENCH, {"tests/test_tokens.py": TEST}) == [
        "CE-001: is marked done, but there is no benchmarks/tokens.py"
    ]


def test_a_bench_row_is_named_by_its_own_script(tmp_path: Path) -> None:
    silent = {"benchmarks/tokens.py": "TEXT = '# requirement: CE-001'\n"}
    speaking = {"benchmarks/tokens.py": "# requirement: CE-001\n"}

    assert problems(tmp_path, BENCH, silent) == [
        "CE-001: is marked done, but benchmarks/tokens.py does not name it"
    ]
    assert problems(tmp_path, BENCH, speaking) == []


def test_a_bench_does_not_stand_in_for_a_test(tmp_path: Path) -> None:
    speaking = {"benchmarks/tokens.py": "# requirement: CE-001\n"}

    assert problems(tmp_path, ROW, speaking) == ["CE-001: is marked done, but no test names it"]


def test_a_row_settled_by_a_ruling_quotes_it(tmp_path: Path) -> None:
    settled = ROW.replace('"unit"', '"ruling"')

    assert problems(tmp_path, settled) == ["CE-001: is settled by a ruling but quotes none"]
    assert problems(tmp_path, settled + 'ruling = "§4: SHA-256"\n') == []


def test_one_id_cannot_stand_twice(tmp_path: Path) -> None:
    row = ROW.replace("done = true", OPEN)
    twice = row + row.split("\n", 3)[3]

    assert problems(tmp_path, twice) == ["CE-001: stands 2 times"]


def test_an_id_begins_with_its_seeds_letters(tmp_path: Path) -> None:
    open_row = ROW.replace("done = true", OPEN).replace("CE-001", "SK-001")

    assert problems(tmp_path, open_row) == ["SK-001: rows of seed 2 begin with CE"]


@pytest.mark.parametrize("field", ["id", "kind", "section", "says", "shown", "issue", "done"])
def test_no_field_may_be_missing(tmp_path: Path, field: str) -> None:
    lines = [line for line in ROW.splitlines() if not line.startswith(f"{field} = ")]

    (problem,) = problems(tmp_path, "\n".join(lines))

    assert f"missing required field `{field}`" in problem


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('"CE-001"', '"CE-1"'),
        ('"unit"', '"belief"'),
        ("issue = 7", "issue = 15"),
        ('"Counts are exact"', '""'),
        ("done = true", "done = true\nowner = 'me'"),
        ("done = true", "done = "),
    ],
)
def test_a_field_that_does_not_fit_is_a_problem(tmp_path: Path, right: str, wrong: str) -> None:
    (problem,) = problems(tmp_path, ROW.replace(right, wrong))

    assert problem.startswith("seed2.toml: ")


def test_a_repository_without_a_manifest_is_a_problem(tmp_path: Path) -> None:
    assert read_manifest(tmp_path).problems == ["there is no manifest"]


def problems(root: Path, manifest: str, sources: dict[str, str] | None = None) -> list[str]:
    files = {(PLACE / "seed2.toml").as_posix(): manifest, **(sources or {})}
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return read_manifest(root).problems
