"""A payload fits, or the field that does not is named."""

from typing import Annotated

import pytest
from msgspec import Meta, Raw

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model, Params
from creonowd.rpc.channel import PayloadReader


class Inner(Model):
    deep_value: Annotated[int, Meta(ge=0)]


class Outer(Params):
    project_id: str
    inner: Inner | None = None
    items: list[Inner] = []  # noqa: RUF012 - msgspec copies it


READER = PayloadReader(Outer)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"{}", "projectId"),
        (b'{"projectId": 5}', "projectId"),
        (b'{"projectId": "a", "inner": {"deepValue": -1}}', "inner.deepValue"),
        (b'{"projectId": "a", "inner": {}}', "inner.deepValue"),
        (b'{"projectId": "a", "items": [{"deepValue": 1}, {}]}', "items[1].deepValue"),
        (b"[]", "params"),
        (b"5", "params"),
    ],
)
def test_the_field_that_does_not_fit_is_named(body: bytes, field: str) -> None:
    with pytest.raises(DaemonError) as caught:
        READER.read(Raw(body))

    assert caught.value.code is ErrorCode.INVALID_ARGUMENT
    assert caught.value.details["field"] == field


def test_meta_is_read_and_unknown_fields_are_counted() -> None:
    read = READER.read(
        b'{"projectId": "a", "x": 1, "y": 2, "_meta": {"timeoutMs": 5, "progressToken": 7}}'
    )

    assert read.params.project_id == "a"
    assert (read.meta.timeout_ms, read.meta.progress_token) == (5, 7)
    assert read.unknown == 2


@pytest.mark.parametrize("body", [b'{"projectId": "\xff"}', b'{"projectId": "a", }'])
def test_what_is_not_json_is_a_parse_error(body: bytes) -> None:
    with pytest.raises(DaemonError) as caught:
        READER.read(body)

    assert caught.value.code is ErrorCode.PARSE_ERROR


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(DaemonError) as caught:
        READER.read(b'{"projectId": "a", "x": ' + b"[" * 50_000 + b"]" * 50_000 + b"}")

    assert caught.value.code is ErrorCode.PARSE_ERROR
