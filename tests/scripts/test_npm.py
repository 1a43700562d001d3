"""The npm packages as they are laid out: under the names that the bridge looks for."""

import json
from pathlib import Path

import pytest

from scripts.shipping.npm import lay_out_bridge, lay_out_platform_package


@pytest.mark.parametrize("build", ["linux-x64", "linux-x64-anthropic-openai"])
def test_a_folder_with_optional_parts_has_the_name_that_the_bridge_looks_for(
    build: str, tmp_path: Path
) -> None:
    folder = tmp_path / build / "creonowd"
    folder.mkdir(parents=True)
    (folder / "creonowd").touch()

    package = lay_out_platform_package(folder, tmp_path / "npm")
    bridge = lay_out_bridge(tmp_path / "npm")

    daemon, electron = (
        json.loads((place / "package.json").read_text(encoding="utf-8"))
        for place in (package, bridge)
    )
    assert daemon["name"] == "@creonow/daemon-linux-x64"
    assert (daemon["os"], daemon["cpu"]) == (["linux"], ["x64"])
    assert electron["optionalDependencies"][daemon["name"]] == daemon["version"]
    assert (package / "creonowd" / "creonowd").is_file()
