"""The types of a story's script: the same fields in Python, in TypeScript and in the daemon."""

import re
from pathlib import Path
from typing import get_type_hints

import msgspec
import pytest

from creonowd.judge.judge import ModelFinding, ModelFindings
from creonowd.providers.fake import Script, ScriptedAnswer
from creonowd.providers.provider import Usage
from creonowd.testing import StoryScript, StoryStep, StoryUsage, StoryVerdict, StoryViolation

DECLARATIONS = Path(__file__).parents[2] / "protocol" / "electron" / "harness.d.ts"
TWINS = {
    StoryScript: Script,
    StoryStep: ScriptedAnswer,
    StoryUsage: Usage,
    StoryVerdict: ModelFindings,
    StoryViolation: ModelFinding,
}


@pytest.mark.parametrize(("typed", "struct"), TWINS.items(), ids=lambda one: one.__name__)
def test_a_type_checker_knows_the_fields_that_the_daemon_takes(
    typed: type, struct: type[msgspec.Struct]
) -> None:
    fields = msgspec.structs.fields(struct)
    known = {field.encode_name for field in fields}
    required = {field.encode_name for field in fields if field.required}

    assert set(get_type_hints(typed)) == known
    assert typed.__required_keys__ == required  # pyright: ignore[reportUnknownMemberType, reportAttributeAccessIssue]
    assert declared(typed.__name__) == {name: name in required for name in known}


def declared(name: str) -> dict[str, bool]:
    """Read the fields of an interface, each with whether it is required."""
    text = DECLARATIONS.read_text(encoding="utf-8")
    body = re.search(rf"^export interface {name} {{\n(.*?)^}}", text, re.DOTALL | re.MULTILINE)
    assert body is not None
    return {field: not mark for field, mark in re.findall(r"^  (\w+)(\??):", body[1], re.MULTILINE)}
