"""The declarations say what the schemas say."""

from enum import StrEnum
from typing import Any, Literal

import pytest
from msgspec import UNSET, UnsetType

from creonowd.model import Empty, Model, Params, Result
from creonowd.rpc.channel import Channel, Contract, HostCall, Notification, Role
from scripts.contract.openrpc import describe
from scripts.contract.typescript import typescript


class Mood(StrEnum):
    """How it felt."""

    CALM = "calm"
    """Nothing was spilt."""
    ANGRY = "angry"
    """Everything was."""


class Quill(Model, tag="quill"):
    """From a goose. */ alert(1) /*"""

    length: int
    """In centimetres."""


class Brush(Model, tag="brush"):
    hairs: float
    """How many, on average."""


class Write(Params):
    """Words.

    Many of them.
    """

    text: str
    """The words."""
    limit: int = 50
    """How many
    at most."""
    kind: Literal["note", "人物"] | None = None
    """What it is. */"""


class Written(Result):
    tools: list[Quill | Brush]
    """What it was written with."""
    moods: dict[str, Mood]
    """How it felt, by the hour."""
    pair: tuple[int, str]
    """Two."""
    anything: Any
    """Whatever."""
    done: bool = True
    """Always."""
    remark: str | UnsetType = UNSET
    """In the margin."""


class Spilt(Model):
    drops: int
    """How many fell."""


def write(session: Any, params: Write) -> Written:
    """Write."""
    raise NotImplementedError


def idle(session: Any, params: Empty) -> None:
    """Do nothing."""


def declarations(*channels: Channel) -> str:
    contract = Contract(
        version=1,
        channels=channels,
        notifications=(Notification("pen:spilt", Spilt),),
        host_calls=(HostCall("pen:refill", Spilt, Empty),),
    )
    return typescript(describe(contract))


TEXT = declarations(Channel("pen:write", write), Channel("pen:idle", idle, role=Role.OWNER))


@pytest.mark.parametrize(
    "expected",
    [
        '/** How it felt. */\nexport type Mood =\n  /** Everything was. */\n  | "angry"\n  /** Nothing was spilt. */\n  | "calm";\n',
        'export interface Brush {\n  type: "brush";\n  /** How many, on average. */\n  hairs: number;\n}\n',
        "/**\n * Words.\n *\n * Many of them.\n */\nexport interface Write {\n  /** The words. */\n  text: string;\n",
        "  /**\n   * How many at most.\n   * @default 50\n   */\n  limit?: number;\n",
        '  /** What it is. *\\/ */\n  kind?: "note" | "人物" | null;\n',
        "  tools: Array<Brush | Quill>;\n",
        "  moods: Record<string, Mood>;\n",
        "  pair: [number, string];\n",
        "  anything: unknown;\n",
        "  done: boolean;\n",
        "  remark?: string;\n",
        "export interface Empty {}\n",
        '  /** Write. */\n  "pen:write": { request: Write; result: Written };\n',
        '  "pen:idle": { request: Empty; result: null };\n',
        '  "pen:spilt": Spilt & Stamp;\n',
        '  "pen:refill": { request: Spilt; result: Empty };\n',
        'export type RendererChannel =\n  | "pen:write";\n',
        'export type OwnerChannel =\n  | "pen:idle";\n',
        'says where it comes from.\n   */\n  | "AI_AUTH_FAILED"\n',
        'the skill or the back end.\n   */\n  | "AI_PARAMETER_DROPPED"\n',
    ],
)
def test_a_type_is_declared(expected: str) -> None:
    assert expected in TEXT


def test_a_docstring_cannot_end_its_comment() -> None:
    assert "/** From a goose. *\\/ alert(1) /* */" in TEXT


def test_a_role_without_channels_is_never() -> None:
    assert "export type OwnerChannel = never;" in declarations(Channel("pen:write", write))


def test_a_type_may_not_take_the_name_of_another() -> None:
    class Channels(Params):
        """Clashes with the map of all channels."""

    def clash(session: Any, params: Any) -> None:
        """Clash."""

    clash.__annotations__["params"] = Channels

    with pytest.raises(ValueError, match="two types of one name: Channels"):
        declarations(Channel("pen:clash", clash))
