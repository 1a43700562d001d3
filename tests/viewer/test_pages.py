"""The files of the desk: what is vendored is what was released, and nothing else may run."""

import json
import re
from base64 import b64encode
from hashlib import sha256
from pathlib import PurePosixPath
from typing import Any

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from creonowd.viewer import pages

IMPORTS = re.compile(r"""^(?:import|export) (?:[^;"']*? from )?["']([^"']+)["'];$""", re.MULTILINE)


def get(path: str) -> Response | None:
    """Ask for a file as a browser does."""
    return pages.page(None, Request(path, Headers({"Host": "127.0.0.1:1"})))


def packages() -> list[dict[str, Any]]:
    """What the manifest lists."""
    return json.loads(pages.load()["vendor/manifest.json"])["packages"]


def import_map() -> dict[str, str]:
    """Where the page finds a package that a module names."""
    found = re.search(
        rb'<script type="importmap">(.*?)</script>', pages.load()["index.html"], re.DOTALL
    )
    assert found is not None
    return json.loads(found[1])["imports"]


@pytest.mark.parametrize("package", packages(), ids=lambda one: one["package"])
def test_what_is_vendored_is_what_was_released(package: dict[str, Any]) -> None:
    contents = pages.load()[f"vendor/{package['file']}"]

    assert sha256(contents).hexdigest() == package["sha256"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", package["version"])
    assert package["licence"] == "MIT"
    licence = pages.STATIC / pages.VENDOR / package["file"].replace(".js", ".LICENSE")
    assert "MIT" in licence.read_text(encoding="utf-8")


def test_the_manifest_lists_every_vendored_file_and_the_page_finds_each() -> None:
    listed = {one["package"]: f"/vendor/{one['file']}" for one in packages()}
    files = {
        f"/{path}" for path in pages.load() if path.startswith("vendor/") and path.endswith(".js")
    }

    assert import_map() == listed
    assert set(listed.values()) == files


def test_every_import_of_a_module_can_be_resolved() -> None:
    known = import_map()
    missing: list[str] = []
    for path, contents in pages.load().items():
        if not path.endswith(".js"):
            continue
        for name in IMPORTS.findall(contents.decode()):
            target = f"{PurePosixPath(path).parent / name[2:]}" if name.startswith("./") else ""
            if name not in known and target.removeprefix("./") not in pages.load():
                missing.append(f"{path}: {name}")

    assert missing == []


def test_no_file_is_served_that_is_no_part_of_the_page() -> None:
    assert get("/vendor/codemirror-view.LICENSE") is None
    assert get("/vendor/../pages.py") is None
    assert get("/vendor") is None
    served = get("/vendor/codemirror-view.js")
    assert served is not None
    assert served.headers["Content-Type"].startswith("text/javascript")


def test_only_the_import_map_may_be_inline() -> None:
    shown = get("/")
    assert shown is not None
    html = shown.body.decode()
    scripts = re.findall(r"<script(?![^>]*\bsrc=)[^>]*>(.*?)</script>", html, re.DOTALL)

    assert len(scripts) == 1
    digest = b64encode(sha256(scripts[0].encode()).digest()).decode()
    policy = shown.headers["Content-Security-Policy"]
    assert f"script-src 'self' 'sha256-{digest}';" in policy
    assert not re.search(r"\son\w+=|style=|javascript:", html)


def test_no_module_turns_text_into_html() -> None:
    written = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function"
    )
    own = {path: text for path, text in pages.load().items() if path.endswith(".js")}

    assert [path for path, text in own.items() if written.search(text.decode())] == []
