"""The page about context files: its limits are the defaults of the settings."""

import re
from pathlib import Path

import msgspec
import pytest

from creonowd.settings import Settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "context-files.md"
ROW = re.compile(r"^\| `(\w+)` \| (\d+) \| (.+) \|$", re.MULTILINE)


@pytest.mark.requirement("CF-043")
def test_the_documented_limits_are_the_settings_defaults() -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(Settings)}

    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))

    assert {"contextMaxBytes", "contextLazyDays", "contextEagerDays"} <= {row[0] for row in rows}
    for name, default, description in rows:
        assert fields[name].default == int(default)
        assert description in str(fields[name].type)
