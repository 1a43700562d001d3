"""A SKILL.md that somebody tore, doubled or mixed up is a skill or says what is wrong."""

from pathlib import Path

import pytest
from hypothesis import given

from creonowd.skills import skill
from creonowd.skills.skill import parse
from testing.fuzz import damaged_inputs

BUILT_IN = [
    path.read_bytes()
    for path in sorted((Path(skill.__file__).parent / "builtin").glob("*/SKILL.md"))
]
PIECES = (
    *(b"\n---\n", b"\ncontext_rules:\n", b"  surrounding: 5\n", b"prompt: |\n", b"\n  user: >-\n"),
    *(
        b"{{text}}",
        b"{{",
        b"!!map",
        b"<<: *a",
        b"? ",
        b"- ",
        b"# ",
        b"\n...\n",
        b"!!python/object:x",
    ),
)


@pytest.mark.fuzz
@given(damaged_inputs(BUILT_IN, PIECES))
def test_a_spoilt_skill_is_a_skill_or_says_what_is_wrong(data: bytes) -> None:
    parsed = parse(data)

    assert all(fault.message for fault in parsed.faults)
    lines = data.count(b"\n") + 1
    assert all(fault.line is None or 1 <= fault.line <= lines for fault in parsed.faults)
