"""A real Chromium for stories, with nothing but this machine to talk to."""

import contextlib
import shutil
from collections.abc import Generator
from os import environ

from playwright.sync_api import Browser, sync_playwright

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextlib.contextmanager
def chromium() -> Generator[Browser]:
    """Start the Chromium that this machine has; `scripts/test` sees to it that there is one."""
    names = [environ["CREONOW_CHROMIUM"]] if "CREONOW_CHROMIUM" in environ else []
    found = map(shutil.which, [*names, "chromium", "chromium-browser", "google-chrome"])
    path = next(path for path in found if path is not None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=QUIET)
        yield browser
        browser.close()
