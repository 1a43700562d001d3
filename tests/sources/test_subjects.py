from pathlib import Path

import pytest

from creonowd.clock import SteppingClock
from creonowd.context.story import Story, StoryDocument
from creonowd.redaction import Redactor
from creonowd.sources.characters import Inject
from creonowd.sources.subjects import Subject, SubjectKind, plain, subjects_of
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import Tree
from creonowd.workspace.projects import Project


def subjects(root: Path, files: dict[str, str], story: Story | None = None) -> list[Subject]:
    for path, text in files.items():
        (root / ".creonow" / path).parent.mkdir(parents=True, exist_ok=True)
        (root / ".creonow" / path).write_text(text, encoding="utf-8")
    clock = SteppingClock()
    tree = Tree(clock)
    project = Project(project_id="prj_test", name="书", root=root)
    constraints = Constraints(tree, clock, Redactor())
    return list(subjects_of(tree, constraints, project, story or Story()))


def test_a_person_has_the_names_of_the_card_and_the_parts_that_are_its_own(tmp_path: Path) -> None:
    cards = {
        "characters/lin.md": "---\nname: 林远\naliases: [阿远]\ninject: mentioned\n---\n侦探。",
        "characters/jane.md": "---\nname: Jane Bennet\n---\nThe eldest.",
        "characters/mary.md": "---\nname: Mary Bennet\n---\nThe plain one.",
    }

    found = {one.names[0]: one for one in subjects(tmp_path, cards)}

    assert {one.kind for one in found.values()} == {SubjectKind.PERSON}
    assert found["林远"].inject is Inject.MENTIONED
    assert found["林远"].is_called("阿远")
    assert found["Jane Bennet"].is_called("jane")
    assert not any(one.is_called("bennet") for one in found.values())


def test_people_come_first_and_chapters_last(tmp_path: Path) -> None:
    files = {
        "threads/信.md": "---\nstatus: open\n---\n那封信。",
        "rules/mine.md": "短句。",
        "settings/港口.md": "潮水。",
        "characters/林远.md": "侦探。",
    }
    story = Story((StoryDocument(path="章/一.md"),))

    found = subjects(tmp_path, files, story)

    assert [one.kind for one in found] == [
        SubjectKind.PERSON,
        SubjectKind.NOTE,
        SubjectKind.RULE,
        SubjectKind.THREAD,
        SubjectKind.CHAPTER,
    ]


def test_each_constraint_is_a_subject_by_its_text(tmp_path: Path) -> None:
    rules = '{"version": 2, "items": [{"id": "con_1", "text": "不得\\n提到月亮"}]}'

    (found,) = subjects(tmp_path, {"rules/constraints.json": rules})

    assert (found.kind, found.names) == (SubjectKind.RULE, ("不得 提到月亮",))
    assert found.source_ref == ".creonow/rules/constraints.json#con_1"


@pytest.mark.parametrize(
    ("path", "text", "name"),
    [
        ("characters/lin.md", "---\nname: 林远\npriority: high\n---\n侦探。", "lin"),
        ("rules/constraints.json", "{", "constraints"),
    ],
)
def test_a_file_with_a_fault_is_there_with_what_is_wrong(
    tmp_path: Path, path: str, text: str, name: str
) -> None:
    (found,) = subjects(tmp_path, {path: text})

    assert name in found.names
    assert found.problem is not None


def test_names_are_compared_without_case_width_and_blanks() -> None:
    assert plain(" Ｊａｎｅ   BENNET ") == "jane bennet"
