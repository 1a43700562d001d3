"""Constraints are read and written as one file, which other programs may change as well."""

import hashlib
import json
import os
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.redaction import Redactor
from creonowd.workspace.constraints import (
    MAX_TEXT,
    TYPES,
    ConstraintFile,
    ConstraintPatch,
    Constraints,
    NewConstraint,
    parse,
    render,
)
from creonowd.workspace.creonow_tree import make_tree
from creonowd.workspace.projects import Project
from testing.fuzz import damaged_inputs
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


THEN = "2026-01-31T12:00:00.000Z"

ITEMS = [
    {"id": "con_0123456789abcdefghij", "text": "没有魔法", "type": "world", "priority": 5},
    {"text": "第一人称", "source": "kg", "degradable": True, "updatedAt": THEN},
]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["items", "version", "text", "id", "type", "x"]), inner)
    ),
)


def of(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=False, indent=2).encode()


def test_a_plain_file_has_constraints_with_defaults() -> None:
    file = parse(of({"version": 1, "items": ["第一人称", "没有魔法"]}), THEN)

    first = file.constraints[0]
    assert [each.text for each in file.constraints] == ["第一人称", "没有魔法"]
    assert (first.type, first.source, first.priority) == ("narrative", "user", 100)
    assert not first.degradable
    assert first.updated_at == THEN
    assert first.id.startswith("con_")
    assert len(first.id) == 24


def test_the_ids_of_a_plain_file_are_the_same_every_time_and_all_different() -> None:
    data = of({"version": 1, "items": ["同", "同", "异", "同"]})

    ids = [each.id for each in parse(data, THEN).constraints]

    assert ids == [each.id for each in parse(data, THEN).constraints]
    assert len(set(ids)) == 4


def test_the_revision_is_the_hash_of_the_bytes() -> None:
    data = of({"version": 1, "items": []})

    assert parse(data, THEN).revision == hashlib.sha256(data).hexdigest()


def test_entries_and_plain_texts_may_stand_together() -> None:
    entry = {"id": "mine", "text": "甲", "type": "plot", "priority": 7, "degradable": True}

    file = parse(of({"version": 2, "items": [entry, "乙"]}), THEN)

    assert file.constraints[0].id == "mine"
    assert file.constraints[0].type == "plot"
    assert file.constraints[0].degradable
    assert file.constraints[1].text == "乙"


def test_an_id_copied_by_hand_is_given_once() -> None:
    entries = [{"id": "same", "text": "甲"}, {"id": "same", "text": "乙"}, {"id": "", "text": "丙"}]

    ids = [each.id for each in parse(of({"version": 2, "items": entries}), THEN).constraints]

    assert ids[0] == "same"
    assert len(set(ids)) == 3


def test_what_is_unknown_survives_in_its_place() -> None:
    document = {
        "$schema": "mine",
        "version": 2,
        "items": [{"note": {"deep": [1, 2.5, None]}, "text": "甲", "colour": "red"}],
        "footer": "终",
    }

    again = json.loads(render(parse(of(document), THEN)))

    assert list(again) == ["$schema", "version", "items", "footer"]
    assert again["items"][0]["note"] == {"deep": [1, 2.5, None]}
    assert again["items"][0]["colour"] == "red"
    assert list(again["items"][0])[:3] == ["note", "text", "colour"]


def test_a_file_is_written_as_people_would_indent_it() -> None:
    rendered = render(parse(of({"version": 1, "items": ["甲"]}), THEN))

    assert (
        rendered.decode() == json.dumps(json.loads(rendered), ensure_ascii=False, indent=2) + "\n"
    )
    assert json.loads(rendered)["version"] == 2


@given(st.lists(st.text(min_size=1).filter(str.strip), max_size=8))
def test_a_file_that_was_written_reads_the_same(texts: list[str]) -> None:
    file = parse(of_texts(texts), THEN)

    again = parse(render(file), "later")

    assert again.constraints == file.constraints
    assert render(again) == render(file)


def of_texts(texts: list[str]) -> bytes:
    safe = [text.encode("utf-8", "replace").decode()[:MAX_TEXT] for text in texts]
    return of({"version": 1, "items": safe})


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b"", 1, 1),
        (b"{", 1, 2),
        (b'{\n  "version": 1,\n  "items": [\n    "a",\n  ]\n}\n', 5, 3),
        ('{"items": ["天"\n, 坏]}'.encode(), 2, 3),
        (b'{"version": 1, "items": ["\xff\xfe"]}', 1, 27),
        ('{"items": [\n  "天", "坏"]}'.encode()[:-5] + b'\xbb"]}', 2, 9),
        (b"[]", 1, 1),
        (b"null", 1, 1),
        (b"{}", 1, 1),
        (b'{"items": {}}', 1, 1),
        (b'{"version": "1", "items": []}', 1, 1),
        (b'{"version": true, "items": []}', 1, 1),
        (b'{"version": 0, "items": []}', 1, 1),
        (b'{"version": 1,\n "items": [\n  "a",\n  7]}', 4, 3),
        (b'{"version": 1,\n "items": ["a", ""]}', 2, 17),
        (b'{"x": [1, {"items": []}],\n "items": ["a",\n   {"id": "x"}]}', 3, 4),
        (b'{"items": [{"text": "a", "type": "poem"}]}', 1, 12),
        (b'{"items": [{"text": "a", "priority": 1.5}]}', 1, 12),
        (b'{"items": [{"text": "a", "priority": -1}]}', 1, 12),
        (b'{"items": [{"text": "a", "source": "ai"}]}', 1, 12),
        (b'{"items": [{"text": "a", "degradable": "no"}]}', 1, 12),
        (b'\xef\xbb\xbf{"items": [7]}', 1, 12),
        (b"[" * 100_000, 1, 1),
    ],
)
def test_a_broken_file_is_reported_with_line_and_column(
    data: bytes, line: int, column: int
) -> None:
    with pytest.raises(DaemonError) as caught:
        parse(data, THEN)

    error = caught.value
    assert error.code is ErrorCode.CONSTRAINT_VALIDATION_ERROR
    assert error.details["path"] == ".creonow/rules/constraints.json"
    assert (error.details["line"], error.details["column"]) == (line, column)


WRITTEN = [of({"version": 1, "items": ["甲", "乙"]}), of({"version": 2, "items": ITEMS})]


@pytest.mark.fuzz
@given(
    damaged_inputs(
        WRITTEN, [b'"items":', b'"version": 1', b'"text":', b'"id": "con_a"', b'"source": "kg"']
    )
)
def test_a_spoilt_file_is_understood_for_good_or_reported(data: bytes) -> None:
    try:
        file = parse(data, THEN)
    except DaemonError:
        expect_understood_or_reported(data)
    else:
        again = parse(render(file), "later")
        assert again.constraints == file.constraints


@pytest.mark.fuzz
@given(st.binary(max_size=60))
def test_any_bytes_are_understood_or_reported(data: bytes) -> None:
    expect_understood_or_reported(data)


def expect_understood_or_reported(data: bytes) -> None:
    try:
        parse(data, THEN)
    except DaemonError as error:
        code, details = error.code, error.details
    else:
        return
    assert code in {ErrorCode.CONSTRAINT_VALIDATION_ERROR, ErrorCode.VERSION_TOO_NEW}
    assert code is ErrorCode.VERSION_TOO_NEW or details["line"] >= 1


@pytest.mark.fuzz
@given(JSON)
def test_any_json_is_understood_or_reported(document: Any) -> None:
    expect_understood_or_reported(json.dumps(document).encode())


def test_a_newer_file_is_refused_as_such() -> None:
    with pytest.raises(DaemonError) as caught:
        parse(of({"version": 3, "items": {"shape": "unknown"}}), THEN)

    assert caught.value.code is ErrorCode.VERSION_TOO_NEW


def test_a_byte_order_mark_and_crlf_are_read() -> None:
    data = b"\xef\xbb\xbf" + of({"version": 1, "items": ["甲"]}).replace(b"\n", b"\r\n")

    assert parse(data, THEN).constraints[0].text == "甲"


def test_the_types_are_the_five_of_the_seed() -> None:
    assert TYPES == ("narrative", "character", "world", "style", "plot")
