"""The pages for people: complete, and every link leads somewhere."""

import re
from pathlib import Path

import pytest

from creonowd.channels import CONTRACT
from creonowd.context.fragment import Rule
from creonowd.errors import ErrorCode, WarningCode
from creonowd.redaction.all_rules import RULES
from scripts.contract.codes import codes_page
from scripts.contract.openrpc import describe
from scripts.contract.reference import anchor, api_page

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
