"""The contract is complete, the same everywhere, and changes when a promise changes."""

import json
import os
import re
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import UNSET, Meta, Raw, UnsetType, field

from creonowd.errors import CATALOGUE, WARNINGS, ErrorCode, WarningCode
from creonowd.model import Empty, Model, Params, Result
from creonowd.rpc.channel import Channel, Contract, Deadline, HostCall, Notification, Role
from scripts.contract.openrpc import contract_hash, describe


class Mood(StrEnum):
    CALM = "calm"
    """Nothing was spilt."""
    ANGRY = "angry"
    """Everything was."""


class Write(Params):
    """What to write.

    And how.
    """

    text: Annotated[str, Meta(min_length=1)]
    """The words."""
    mood: Mood = Mood.CALM
    """How to hold
    the pen."""
    extra: Raw = field(default_factory=Raw)
    """Anything else."""


class Paper(Model):
    """A sheet, said only."""

    words: list[str] = field(default_factory=list[str])
    """What is written on it."""
    watermark: str | None = None
    """The mill."""
    stain: str | UnsetType = UNSET
    """Its colour; absent if it is clean."""


class Blot(Model, omit_defaults=True):
    """Says only what is unusual."""

    size: int = 1
    """In millimetres."""
    at: int
    """The line."""


class Ink(Model):
    """Heard and said."""

    colour: str = "black"
    """As the bottle says."""


class Written(Result):
    """What was written."""

    paper: Paper
    """The sheet."""
    ink: Ink
    """What is left of it."""
    blots: dict[str, list[Blot]] | None
    """By page."""


class Dipped(Params):
    ink: Ink
    """Which bottle."""


class Spilt(Model):
    """Ink on the floor."""

    drops: int
    """How many fell."""


async def write(session: Any, params: Write) -> Written:
    """Write words on paper.

    Slow with a quill.
    """
    raise NotImplementedError


def dip(session: Any, params: Dipped) -> None:
    """Take ink."""


def idle(session: Any, _params: Empty) -> None:
    """Do nothing."""


CONTRACT = Contract(
    version=1,
    channels=(
        Channel("pen:write", write, role=Role.OWNER, deadline=Deadline.NONE),
        Channel("pen:dip", dip),
        Channel("pen:idle", idle),
    ),
    notifications=(Notification("pen:spilt", Spilt),),
    host_calls=(HostCall("pen:refill", Spilt, Ink),),
)


def method(name: str) -> dict[str, Any]:
    return next(m for m in describe(CONTRACT)["methods"] if m["name"] == name)


def schema(name: str) -> dict[str, Any]:
    return describe(CONTRACT)["components"]["schemas"][name]


def test_methods_are_sorted_and_say_who_may_call_and_for_how_long() -> None:
    rows = [(m["name"], m["x-role"], m["x-deadline"]) for m in describe(CONTRACT)["methods"]]

    assert rows == [
        ("pen:dip", "renderer", "request"),
        ("pen:idle", "renderer", "request"),
        ("pen:write", "owner", "none"),
    ]


def test_a_handlers_docstring_is_the_methods_summary_and_description() -> None:
    assert method("pen:write")["summary"] == "Write words on paper."
    assert method("pen:write")["description"] == "Slow with a quill."
    assert "description" not in method("pen:dip")


def test_parameters_are_named_and_typed() -> None:
    params = method("pen:write")["params"]

    assert [(p["name"], p["required"]) for p in params] == [
        ("text", True),
        ("mood", False),
        ("extra", False),
    ]
    assert params[0]["description"] == "The words."
    assert params[0]["schema"] == {"description": "The words.", "type": "string", "minLength": 1}


def test_the_docstring_below_a_field_describes_it_also_where_it_is_inherited() -> None:
    class Scribble(Write):
        """Hastily."""

        haste: int
        """From 1 to 5."""

    def scribble(session: Any, params: Any) -> None:
        """Scribble."""

    scribble.__annotations__["params"] = Scribble

    described = describe(Contract(1, (Channel("pen:scribble", scribble),)))

    properties = described["components"]["schemas"]["Scribble"]["properties"]
    assert {name: held["description"] for name, held in properties.items()} == {
        "text": "The words.",
        "mood": "How to hold the pen.",
        "extra": "Anything else.",
        "haste": "From 1 to 5.",
    }
    assert properties["mood"]["$ref"] == "#/components/schemas/Mood"


def test_a_field_without_a_docstring_is_refused() -> None:
    class Smudge(Params):
        """Without a word on its size."""

        size: int

    def smudge(session: Any, params: Any) -> None:
        """Smudge."""

    smudge.__annotations__["params"] = Smudge

    with pytest.raises(ValueError, match="Smudge has no docstring below size"):
        describe(Contract(1, (Channel("pen:smudge", smudge),)))


def test_the_docstring_below_a_member_describes_it() -> None:
    assert schema("Mood")["x-enumDescriptions"] == {
        "angry": "Everything was.",
        "calm": "Nothing was spilt.",
    }
    assert schema("ErrorCode")["x-enumDescriptions"].keys() == set(ErrorCode)


def test_a_channel_without_payload_has_no_parameters_and_may_answer_null() -> None:
    assert method("pen:idle")["params"] == []
    assert method("pen:idle")["result"]["schema"] == {"type": "null"}


def test_what_the_daemon_says_by_itself_is_listed() -> None:
    document = describe(CONTRACT)
    stamp = {"$ref": "#/components/schemas/Stamp"}

    events = {event["name"]: event["params"] for event in document["x-notifications"]}

    assert list(events) == ["$/lagged", "$/progress", "pen:spilt"]
    assert events["pen:spilt"] == {"allOf": [{"$ref": "#/components/schemas/Spilt"}, stamp]}
    assert document["x-hostCalls"] == [
        {
            "name": "pen:refill",
            "params": {"$ref": "#/components/schemas/Spilt"},
            "result": {"$ref": "#/components/schemas/Ink"},
        }
    ]


def test_a_default_of_what_is_only_sent_is_always_there() -> None:
    assert schema("Paper")["required"] == ["words", "watermark"]
    assert "default" not in schema("Paper")["properties"]["words"]


def test_a_struct_that_omits_its_defaults_says_so() -> None:
    assert schema("Blot")["required"] == ["at"]


def test_a_default_that_is_also_heard_may_be_left_out() -> None:
    assert schema("Ink")["required"] == []
    assert schema("Ink")["properties"]["colour"]["default"] == "black"


def test_docstrings_lose_the_indentation_of_the_source() -> None:
    assert schema("Write")["description"] == "What to write.\n\nAnd how."


def test_every_error_code_and_every_warning_is_in_the_document() -> None:
    document = describe(CONTRACT)

    assert document["components"]["errors"].keys() == {code.value for code in ErrorCode}
    assert document["components"]["errors"]["NOT_FOUND"] == {
        "code": -32803,
        "message": CATALOGUE[ErrorCode.NOT_FOUND].english,
        "data": {"code": "NOT_FOUND", "retryable": False},
    }
    assert document["x-warnings"].keys() == {code.value for code in WarningCode}
    assert schema("ErrorCode")["enum"] == sorted(ErrorCode)
    assert schema("WarningCode")["enum"] == sorted(WarningCode)


def test_every_reference_leads_somewhere() -> None:
    document = describe(CONTRACT)

    found = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))

    assert found <= document["components"]["schemas"].keys()


def test_the_hash_does_not_depend_on_the_order_of_the_tables() -> None:
    backwards = Contract(
        version=1,
        channels=tuple(reversed(CONTRACT.channels)),
        notifications=CONTRACT.notifications,
        host_calls=CONTRACT.host_calls,
    )

    assert contract_hash(describe(backwards)) == contract_hash(describe(CONTRACT))


@pytest.mark.parametrize(
    "other",
    [
        Contract(2, CONTRACT.channels, CONTRACT.notifications, CONTRACT.host_calls),
        Contract(1, CONTRACT.channels[1:], CONTRACT.notifications, CONTRACT.host_calls),
        Contract(1, CONTRACT.channels, (), CONTRACT.host_calls),
        Contract(1, CONTRACT.channels, CONTRACT.notifications, ()),
        Contract(
            1,
            (Channel("pen:write", write), *CONTRACT.channels[1:]),
            CONTRACT.notifications,
            CONTRACT.host_calls,
        ),
    ],
    ids=["version", "channel", "notification", "host call", "role"],
)
def test_a_changed_promise_changes_the_hash(other: Contract) -> None:
    assert contract_hash(describe(other)) != contract_hash(describe(CONTRACT))


def test_the_hash_is_the_same_in_another_process_with_another_hash_seed() -> None:
    code = (
        "from tests.protocol.test_openrpc import CONTRACT, contract_hash, describe;"
        "print(contract_hash(describe(CONTRACT)))"
    )

    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=Path(__file__).parents[2],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
            encoding="utf-8",
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert hashes == {contract_hash(describe(CONTRACT))}


@pytest.mark.requirement("CE-063")
def test_every_code_has_a_meaning_in_both_languages() -> None:
    assert CATALOGUE.keys() == set(ErrorCode)
    assert WARNINGS.keys() == set(WarningCode)
    assert all(entry.english and entry.chinese for entry in CATALOGUE.values())
    assert all(entry.english and entry.chinese for entry in WARNINGS.values())
