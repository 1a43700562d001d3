"""The list of what is in the folder: whose each file is, and under which licence."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts.shipping.manifest import write_manifest

TABLE = "creonowd/tokens/tables/qwen3.tokens"
SCRIPT = "creonowd/viewer/static/vendor/codemirror-view.js"
OURS = "creonowd/viewer/static/main.js"
STRANGE = "libstrange.so.1"


@pytest.fixture
def manifest(tmp_path: Path) -> dict[str, Any]:
    """The manifest of a folder with something of everyone in it."""
    for name in (TABLE, SCRIPT, OURS, STRANGE):
        path = tmp_path / "_internal" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    origins = {STRANGE: Path("/somewhere/else") / STRANGE}
    write_manifest(tmp_path, "linux-x64", [], origins)
    return json.loads((tmp_path / "MANIFEST.json").read_bytes())


def owner(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    (file,) = [one for one in manifest["files"] if one["path"] == f"_internal/{name}"]
    (found,) = [one for one in manifest["components"] if one["name"] == file["component"]]
    return found


def test_what_others_wrote_is_not_called_ours(manifest: dict[str, Any]) -> None:
    script, tables = owner(manifest, SCRIPT), owner(manifest, TABLE)

    assert owner(manifest, OURS)["name"] == "creonowd"
    assert (script["name"], script["licence"]) == ("@codemirror/view", "MIT")
    assert script["version"].startswith("6.")
    assert script["texts"] == ["licences/@codemirror/view/codemirror-view.LICENSE"]
    assert "Apache-2.0" in tables["licence"]
    assert "licences/tokenizer-tables/LICENSE-APACHE" in tables["texts"]


def test_a_library_that_nobody_claims_is_not_called_a_part_of_python(
    manifest: dict[str, Any],
) -> None:
    strange = owner(manifest, STRANGE)

    assert (strange["name"], strange["licence"]) == (STRANGE, "unknown")
