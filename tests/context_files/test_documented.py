"""The README tells how long context files are kept, and it is what the settings say."""

import re
from pathlib import Path

import msgspec
import pytest

from creonowd.settings import Settings

README = Path(__file__).resolve().parents[2] / "README.md"
ROW = re.compile(r"^\| `(\w+)` \| (\d+) \| (.+) \|$", re.MULTILINE)


@pytest.mark.requirement("CF-043")
def test_the_limits_in_the_readme_are_the_settings_defaults() -> None:
    fields = {field.encode_name: field for field in msgspec.structs.fields(Settings)}

    told = ROW.findall(README.read_text(encoding="utf-8"))

    assert {"contextMaxBytes", "contextLazyDays", "contextEagerDays"} <= {row[0] for row in told}
    for name, default, description in told:
        assert fields[name].default == int(default)
        assert description in str(fields[name].type)
