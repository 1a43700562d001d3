import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from creonowd.errors import DaemonError, ErrorCode
from creonowd.workspace.constraint_file import MAX_TEXT, TYPES, parse, render
from testing.fuzz import damaged_inputs

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
