"""The pages for people: complete, and every link leads somewhere."""

import re
from pathlib import Path
from typing import Any

import pytest

from creonowd.channels import CONTRACT
from creonowd.context.fragment import Rule
from creonowd.errors import ErrorCode, WarningCode
from creonowd.redaction.all_rules import RULES
from scripts.contract.codes import codes_page
from scripts.contract.openrpc import describe
from scripts.contract.reference import anchor, api_page, kind, limits

DOCS = Path(__file__).resolve().parents[2] / "docs"
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
PAGES = sorted(DOCS.glob("*.md"))

DOCUMENT = describe(CONTRACT)
API = api_page(DOCUMENT)


def anchors_of(page: Path) -> set[str]:
    return {anchor(heading) for heading in HEADING.findall(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    lost: list[str] = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        path, _, place = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not target.startswith("http") and (
            not file.exists() or (place and place not in anchors_of(file))
        ):
            lost.append(target)

    assert lost == []


def test_every_channel_and_every_field_has_its_line() -> None:
    for method in DOCUMENT["methods"]:
        section = API.partition(f"\n## {method['name']}\n")[2].partition("\n## ")[0]

        assert method["summary"] in section
        for param in method["params"]:
            assert f"- `{param['name']}` · " in section, method["name"]
        for error in method["errors"]:
            assert f"[`{error['$ref'].rpartition('/')[2]}`]" in section


def test_every_code_rule_and_kind_of_secret_has_its_entry() -> None:
    page = codes_page()

    names = [*ErrorCode, *WarningCode, *Rule, *(rule.pattern_id for rule in RULES)]
    assert [one for one in names if f"### {one}\n" not in page and f"`{one}`" not in page] == []


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"$ref": "#/components/schemas/Layer"}, "[Layer](#layer)"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "map of integer"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string or null"),
        ({"enum": ["utf-8", "base64"]}, "`utf-8` or `base64`"),
        ({}, "anything"),
    ],
)
def test_a_type_is_spelled_in_words(schema: dict[str, Any], expected: str) -> None:
    assert kind(schema) == expected


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"minimum": 1, "maximum": 200}, ["1 to 200"]),
        ({"anyOf": [{"minimum": 0}, {"type": "null"}]}, ["at least 0"]),
        ({"exclusiveMinimum": 0, "maximum": 1}, ["over 0, at most 1"]),
        ({"minLength": 1}, ["not empty"]),
        ({"maxItems": 5}, ["at most 5 items"]),
    ],
)
def test_limits_are_spelled_in_words(schema: dict[str, Any], expected: list[str]) -> None:
    assert list(limits(schema)) == expected
