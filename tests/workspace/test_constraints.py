import hashlib
import json
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.workspace.constraint_file import ConstraintFile
from creonowd.workspace.constraints import ConstraintPatch, Constraints, NewConstraint
from creonowd.workspace.creonow_tree import make_tree
from creonowd.workspace.projects import Project
from tests.workspace.stores import a_store

PATH = ".creonow/rules/constraints.json"
SECRET = "sk-abcdefghij0123456789ABCDEFGHIJ"


def on_disk(project: Project) -> dict[str, Any]:
    return json.loads((project.root / PATH).read_bytes())


def by_hand(project: Project, document: Any) -> None:
    (project.root / PATH).parent.mkdir(parents=True, exist_ok=True)
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    (project.root / PATH).write_bytes(data)


def texts(file: ConstraintFile) -> list[str]:
    return [constraint.text for constraint in file.constraints]


async def refusal(asked: Awaitable[object]) -> DaemonError:
    with pytest.raises(DaemonError) as caught:
        await asked
    return caught.value


async def test_without_a_file_there_is_nothing_and_nothing_is_written(
    store: Constraints, project: Project
) -> None:
    file = await store.list(project)

    assert file.constraints == []
    assert list(project.root.iterdir()) == []


async def test_without_a_file_the_revision_is_that_of_the_defaults(
    store: Constraints, project: Project
) -> None:
    before = (await store.list(project)).revision
    make_tree(project.root)
    after = (await store.list(project)).revision

    assert before == after
    assert after == hashlib.sha256((project.root / PATH).read_bytes()).hexdigest()
    await store.create(project, NewConstraint(text="甲"), before)


async def test_a_constraint_that_was_created_is_in_the_file(
    store: Constraints, project: Project
) -> None:
    file = await store.create(
        project, NewConstraint(text=" 没有魔法 ", type="world", priority=5, degradable=True)
    )

    made = file.constraints[-1]
    assert made.text == "没有魔法"
    assert on_disk(project) == {
        "version": 2,
        "items": [
            {
                "id": made.id,
                "text": "没有魔法",
                "type": "world",
                "source": "user",
                "priority": 5,
                "degradable": True,
                "updatedAt": made.updated_at,
            }
        ],
    }
    assert file.revision == hashlib.sha256((project.root / PATH).read_bytes()).hexdigest()
    assert (await a_store().list(project)).constraints == file.constraints


async def test_a_constraint_is_changed_in_its_place(store: Constraints, project: Project) -> None:
    await store.replace(project, ["甲", "乙", "丙"])
    old = (await store.list(project)).constraints[1]

    file = await store.update(project, old.id, ConstraintPatch(text="新", priority=1))

    assert texts(file) == ["甲", "新", "丙"]
    assert file.constraints[1].id == old.id
    assert file.constraints[1].type == old.type
    assert file.constraints[1].updated_at >= old.updated_at


async def test_a_change_of_nothing_writes_nothing(store: Constraints, project: Project) -> None:
    file = await store.create(project, NewConstraint(text="甲"))
    before = (project.root / PATH).stat()

    for patch in (ConstraintPatch(), ConstraintPatch(text="甲", priority=100)):
        after = await store.update(project, file.constraints[0].id, patch)
        assert after.revision == file.revision

    assert (project.root / PATH).stat().st_mtime_ns == before.st_mtime_ns


async def test_a_deleted_constraint_is_gone(store: Constraints, project: Project) -> None:
    file = await store.replace(project, ["甲", "乙"])

    after = await store.delete(project, file.constraints[0].id)

    assert texts(after) == ["乙"]
    error = await refusal(store.delete(project, file.constraints[0].id))
    assert error.code is ErrorCode.CONSTRAINT_NOT_FOUND


async def test_set_keeps_the_order_given_and_the_ids_of_texts_that_stay(
    store: Constraints, project: Project
) -> None:
    first = await store.replace(project, ["甲", "乙", "丙"])
    await store.update(project, first.constraints[2].id, ConstraintPatch(priority=1))

    second = await store.replace(project, ["丙", "丁", "甲"])

    assert texts(second) == ["丙", "丁", "甲"]
    assert second.constraints[0].id == first.constraints[2].id
    assert second.constraints[0].priority == 1
    assert second.constraints[2] == first.constraints[0]


async def test_what_the_knowledge_graph_wrote_is_nobodys_to_change(
    store: Constraints, project: Project
) -> None:
    kg = {"id": "kg1", "text": "林远冷静", "source": "kg", "type": "character", "priority": 3}
    by_hand(project, {"version": 2, "items": [kg, "甲"]})

    errors = [
        await refusal(store.update(project, "kg1", ConstraintPatch(text="x"))),
        await refusal(store.delete(project, "kg1")),
        await refusal(store.create(project, NewConstraint(text="x", source="kg"))),
    ]
    file = await store.replace(project, [])

    assert {error.code for error in errors} == {ErrorCode.CONTEXT_SCOPE_VIOLATION}
    assert [constraint.id for constraint in file.constraints] == ["kg1"]
    assert on_disk(project)["items"][0]["priority"] == 3


@pytest.mark.parametrize(
    "values",
    [
        NewConstraint(text=""),
        NewConstraint(text=" \n\t\u3000"),
        NewConstraint(text="x" * 10_001),
        NewConstraint(text="x", type="poem"),
        NewConstraint(text="x", priority=-1),
        NewConstraint(text="x", priority=10**9),
        NewConstraint(text="x", source="ai"),
    ],
)
async def test_a_constraint_that_is_not_valid_is_refused_and_makes_no_folder(
    store: Constraints, project: Project, values: NewConstraint
) -> None:
    error = await refusal(store.create(project, values))

    assert error.code is ErrorCode.CONSTRAINT_VALIDATION_ERROR
    assert list(project.root.iterdir()) == []


@pytest.mark.parametrize("again", ["没有 魔法", " 没有 魔法 ", "没有   魔法", "没有\u3000魔法"])
async def test_the_same_text_twice_is_a_conflict(
    store: Constraints, project: Project, again: str
) -> None:
    await store.replace(project, ["没有 魔法", "乙"])
    other = (await store.list(project)).constraints[1]

    created = await refusal(store.create(project, NewConstraint(text=again)))
    updated = await refusal(store.update(project, other.id, ConstraintPatch(text=again)))
    doubled = await refusal(store.replace(project, ["没有 魔法", again]))

    for error in (created, updated, doubled):
        assert error.code is ErrorCode.CONSTRAINT_CONFLICT
        assert error.details["reason"] == "duplicate"


async def test_a_repetition_made_by_hand_can_be_kept_by_set(
    store: Constraints, project: Project
) -> None:
    by_hand(project, {"version": 1, "items": ["甲", "甲"]})

    file = await store.replace(project, ["甲", "甲", "乙"])

    assert texts(file) == ["甲", "甲", "乙"]


async def test_five_hundred_fit_and_one_more_does_not(store: Constraints, project: Project) -> None:
    many = [f"约束 {number}" for number in range(500)]

    await store.replace(project, many)
    one_more = await refusal(store.create(project, NewConstraint(text="501")))
    too_long = await refusal(store.replace(project, [*many, "501"]))

    for error in (one_more, too_long):
        assert error.code is ErrorCode.CONSTRAINT_VALIDATION_ERROR
        assert error.details["limit"] == 500
    assert len((await store.list(project)).items) == 500


async def test_a_stale_revision_is_a_conflict_and_changes_nothing(
    store: Constraints, project: Project
) -> None:
    first = await store.create(project, NewConstraint(text="甲"))
    second = await store.create(project, NewConstraint(text="乙"), first.revision)
    one = first.constraints[0].id

    errors = [
        await refusal(store.create(project, NewConstraint(text="丙"), first.revision)),
        await refusal(store.update(project, one, ConstraintPatch(text="x"), first.revision)),
        await refusal(store.delete(project, one, first.revision)),
        await refusal(store.replace(project, [], first.revision)),
    ]

    assert {error.code for error in errors} == {ErrorCode.CONSTRAINT_CONFLICT}
    assert errors[0].details["revision"] == second.revision
    assert (await store.list(project)).revision == second.revision


async def test_a_plain_file_is_read_as_it_is_and_migrated_by_the_first_write(
    store: Constraints, project: Project
) -> None:
    by_hand(project, {"version": 1, "items": ["甲", "乙"], "note": "我的"})
    before = (project.root / PATH).read_bytes()
    read = await store.list(project)
    untouched = (project.root / PATH).read_bytes()

    written = await store.update(project, read.constraints[1].id, ConstraintPatch(type="plot"))

    assert untouched == before
    assert written.constraints[0] == read.constraints[0]
    assert written.constraints[1].id == read.constraints[1].id
    assert on_disk(project)["version"] == 2
    assert on_disk(project)["note"] == "我的"


async def test_unknown_fields_survive_every_change(store: Constraints, project: Project) -> None:
    by_hand(
        project,
        {
            "version": 2,
            "theme": {"dark": True},
            "items": [
                {"id": "a", "text": "甲", "why": ["重要"]},
                {"id": "b", "text": "乙", "x": 1},
            ],
        },
    )

    await store.update(project, "a", ConstraintPatch(text="新甲"))
    await store.replace(project, ["乙", "新甲"])
    await store.create(project, NewConstraint(text="丙"))

    document = on_disk(project)
    assert document["theme"] == {"dark": True}
    assert {item["id"]: item for item in document["items"]}["a"]["why"] == ["重要"]
    assert document["items"][0]["x"] == 1


@pytest.mark.parametrize("content", [b"", b"{", b'{"version": 1, "items": [}', b"\xff", b"[]"])
async def test_a_broken_file_is_reported_and_never_overwritten(
    store: Constraints, project: Project, content: bytes
) -> None:
    by_hand(project, content)

    errors = [
        await refusal(store.list(project)),
        await refusal(store.create(project, NewConstraint(text="甲"))),
        await refusal(store.replace(project, ["甲"])),
        await refusal(store.delete(project, "x")),
    ]

    for error in errors:
        assert error.code is ErrorCode.CONSTRAINT_VALIDATION_ERROR
        assert error.details["line"] >= 1
        assert error.details["column"] >= 1
        assert str(project.root) not in f"{error} {error.details}"
    assert (project.root / PATH).read_bytes() == content


async def test_a_newer_file_is_refused_and_never_rewritten(
    store: Constraints, project: Project
) -> None:
    by_hand(project, {"version": 3, "items": []})
    before = (project.root / PATH).read_bytes()

    error = await refusal(store.create(project, NewConstraint(text="甲")))

    assert error.code is ErrorCode.VERSION_TOO_NEW
    assert (project.root / PATH).read_bytes() == before


async def test_a_hand_edit_is_seen_at_once(store: Constraints, project: Project) -> None:
    await store.replace(project, ["甲"])

    for number in range(50):
        by_hand(project, {"version": 1, "items": [f"{number:03}"]})
        assert texts(await store.list(project)) == [f"{number:03}"]


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_out_of_the_tree_is_neither_read_nor_written(
    store: Constraints, project: Project, tmp_path: Path
) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text('{"version": 1, "items": ["秘密"]}', encoding="utf-8")
    (project.root / ".creonow/rules").mkdir(parents=True)
    (project.root / PATH).symlink_to(outside)

    read = await refusal(store.list(project))
    written = await refusal(store.create(project, NewConstraint(text="甲")))

    assert read.code is written.code is ErrorCode.INVALID_ARGUMENT
    assert "甲" not in outside.read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
async def test_a_link_inside_the_folder_stays_a_link(store: Constraints, project: Project) -> None:
    by_hand(project, {"version": 1, "items": []})
    (project.root / PATH).rename(project.root / ".creonow/rules/real.json")
    (project.root / PATH).symlink_to("real.json")

    await store.create(project, NewConstraint(text="甲"))

    assert (project.root / PATH).is_symlink()
    assert texts(await store.list(project)) == ["甲"]


async def test_a_text_sent_back_as_it_was_shown_keeps_its_secret_on_disk(
    store: Constraints, project: Project
) -> None:
    """Clients only ever see redacted texts; a round trip must not destroy what the user wrote."""
    secret = f"不要提到 {SECRET}"
    first = await store.replace(project, [secret, "乙"])
    shown = Redactor().redact(secret).text

    second = await store.replace(project, ["乙", shown])
    third = await store.update(project, first.constraints[0].id, ConstraintPatch(text=shown))

    assert shown != secret
    assert texts(second) == ["乙", secret]
    assert texts(third) == ["乙", secret]
    assert second.constraints[1].id == first.constraints[0].id


async def test_two_secrets_that_look_alike_survive_a_round_trip(
    store: Constraints, project: Project
) -> None:
    secrets = [f"密钥 {SECRET}", f"密钥 {SECRET[::-1].replace('-ks', '')}", "密钥 sk-" + "aB3" * 12]
    before = await store.replace(project, secrets)
    shown = [Redactor().redact(text).text for text in secrets]

    after = await store.replace(project, shown)

    assert len(set(shown)) < len(shown)
    assert after.revision == before.revision
    assert texts(after) == secrets


async def test_leftovers_of_killed_writers_are_swept(store: Constraints, project: Project) -> None:
    make_tree(project.root)
    leftover = project.root / ".creonow/rules/.creonow-1-1.tmp"
    leftover.write_bytes(b"half")
    os.utime(leftover, (1_600_000_000, 1_600_000_000))

    await store.create(project, NewConstraint(text="甲"))

    assert not leftover.exists()
