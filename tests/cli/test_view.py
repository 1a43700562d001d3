"""`creonowd view`: the viewer's address, and a browser that is handed it in secret."""

import json
import re
import sys
from functools import partial
from pathlib import Path

import pytest
from anyio import to_thread

from testing.clients import run_daemon
from tests.cli.commands import at_terminal, creonowd_process

ADDRESS = r"http://127\.0\.0\.1:\d+/#\S+"
BROWSER = """#!{python}
import html, json, os, re, stat, sys, urllib.parse, urllib.request
from websockets.sync.client import connect

place = urllib.request.url2pathname(urllib.parse.urlparse(sys.argv[1]).path)
text = open(place, encoding="utf-8").read()
address = html.unescape(re.search('url=([^"]+)"', text)[1])
origin, _, fields = address.partition("/#")
token = urllib.parse.parse_qs(fields)["token"][0]
with open({record!r}, "w", encoding="utf-8") as record:
    mode = stat.S_IMODE(os.stat(place).st_mode)
    json.dump({{"arguments": sys.argv[1:], "token": token, "mode": mode}}, record)
with connect(origin.replace("http", "ws", 1) + "/rpc") as socket:
    call = {{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {{"token": token}}}}
    socket.send(json.dumps(call))
    assert "result" in json.loads(socket.recv())
"""


@pytest.mark.skipif(sys.platform == "win32", reason="a browser that is a script")
async def test_the_token_reaches_the_browser_and_no_process_list(tmp_path: Path) -> None:
    """Everyone on a computer sees the arguments of every process."""
    record = tmp_path / "seen.json"
    browser = tmp_path / "browser"
    browser.write_text(BROWSER.format(python=sys.executable, record=str(record)), encoding="utf-8")
    browser.chmod(0o700)
    open_viewer = partial(
        creonowd_process, tmp_path / "data", "view", "--open", BROWSER=f"{browser} %s"
    )

    async with run_daemon(tmp_path / "data"):
        ran = await to_thread.run_sync(open_viewer)

    assert (ran.returncode, ran.stderr) == (0, b"")
    seen = json.loads(record.read_text(encoding="utf-8"))
    assert seen["token"] not in " ".join(seen["arguments"])
    assert seen["token"] not in ran.stdout.decode()
    assert seen["mode"] == 0o600
    assert list((tmp_path / "data" / "run").glob("*.html")) == []


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_enter_shows_a_new_address_and_a_second_call_says_that_a_daemon_runs(
    tmp_path: Path,
) -> None:
    """The first address works once, so a closed tab needs another."""
    with at_terminal(tmp_path, "view", LC_ALL="C") as first:
        first.until(ADDRESS)
        first.enter()
        addresses = first.until(ADDRESS, times=2)
        with at_terminal(tmp_path, "view", LC_ALL="zh_CN.UTF-8") as second:
            assert second.end() == 0
        first.interrupt()
        status = first.end()

    assert len(set(addresses)) == 2
    assert status == 0, first.shown
    assert "Enter prints a new one, Ctrl-C ends the daemon." in first.shown
    assert "守护进程已在运行" in second.shown
    assert "Ctrl-C" not in second.shown
    assert len(re.findall(ADDRESS, second.shown)) == 1


async def test_a_page_that_a_killed_command_left_goes_at_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / "run" / "viewer-0123.html"
    left.parent.mkdir()
    left.touch()

    async with run_daemon(tmp_path):
        assert not left.exists()
