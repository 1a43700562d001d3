"""Story: a web page from elsewhere tries to talk to the daemon, in a real browser, and gets nothing."""

import functools
import http.server
import subprocess
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest
from playwright.sync_api import Page

from creonowd.daemon import endpoint
from creonowd.testing.browser import chromium
from testing.clients import PATIENCE, daemon_command, environment

SOCKET = """address => new Promise(done => {
  const socket = new WebSocket(address);
  socket.onopen = () => socket.send('{"jsonrpc":"2.0","id":1,"method":"app:ping"}');
  socket.onmessage = event => done('answered: ' + event.data);
  socket.onerror = () => done('refused');
})"""
FETCH = """address => fetch(address, {method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"app:ping"}'})
  .then(answer => answer.text()).then(text => 'read: ' + text).catch(() => 'refused')"""


@pytest.fixture
def address(tmp_path: Path) -> Generator[str]:
    """A daemon with a WebSocket."""
    command = daemon_command(tmp_path, "--websocket", "0")
    with subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE) as process:
        deadline = time.monotonic() + PATIENCE
        while (found := endpoint.read(tmp_path)) is None:
            assert time.monotonic() < deadline, "the daemon did not start"
            time.sleep(0.02)
        yield next(way.address for way in found.endpoints if way.transport == "websocket")
        process.terminate()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Generator[str]:
    """A web site of somebody else."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("<!doctype html><title>elsewhere</title>", encoding="utf-8")
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


@pytest.fixture
def page() -> Generator[Page]:
    with chromium() as browser:
        yield browser.new_page()


def test_a_page_from_another_origin_is_refused(page: Page, address: str, elsewhere: str) -> None:
    page.goto(elsewhere)

    by_socket = page.evaluate(SOCKET, address)
    by_localhost = page.evaluate(SOCKET, address.replace("127.0.0.1", "localhost"))
    by_fetch = page.evaluate(FETCH, address.replace("ws://", "http://"))

    assert (by_socket, by_localhost, by_fetch) == ("refused", "refused", "refused")


def test_a_page_without_an_origin_is_refused(page: Page, address: str) -> None:
    page.goto("data:text/html,<title>nowhere</title>")

    assert page.evaluate(SOCKET, address) == "refused"
