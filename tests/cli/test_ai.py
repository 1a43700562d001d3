"""`creonowd ai`: from a name and a key to an answer, with and without a terminal."""

import json
import os
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anyio import to_thread

from creonowd.providers.configured import PRESETS
from creonowd.settings import check_backends, load
from testing.clients import environment, over_stdio
from testing.local_servers import OllamaServer
from testing.providers import KEY, ModelServer, ScriptedOpenAI, open_model_server, open_server
from tests.cli.commands import creonowd


@pytest.fixture
def user_data(tmp_path: Path) -> Path:
    return tmp_path / "用户 数据"


@pytest.fixture
async def model_server() -> AsyncGenerator[ModelServer]:
    async with open_model_server() as server:
        yield server


async def run(user_data: Path, *arguments: str, **options: Any) -> "Any":
    return await to_thread.run_sync(partial(creonowd, user_data, "ai", *arguments, **options))


async def test_a_key_that_is_piped_in_is_kept_closed_and_one_call_is_tried(
    user_data: Path, model_server: ModelServer
) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("yes")
    url = model_server.url.replace("127.0.0.1", "localhost.localdomain.invalid")

    refused = await run(user_data, "add", "deepseek", "--base-url", url, stdin=f"{KEY}\n".encode())

    path = user_data / "keys" / "deepseek"
    assert path.read_text(encoding="utf-8") == f"{KEY}\n"
    if os.name != "nt":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert refused.returncode == 1
    assert b"UPSTREAM_ERROR" in refused.stderr
    assert b"ai test deepseek" in refused.stderr
    assert KEY.encode() not in refused.stdout + refused.stderr
    stored = load(user_data, environ={})
    assert (list(stored.backends), stored.ai_backend) == (["deepseek"], "")
    assert KEY not in (user_data / "settings.json").read_text(encoding="utf-8")


async def test_the_key_of_a_known_name_is_kept_for_a_server_at_home_too(
    user_data: Path, model_server: ModelServer
) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("yes")

    words = ("add", "deepseek", "--base-url", f"{model_server.url}/v1")
    added = await run(user_data, *words, stdin=f"{KEY}\n".encode())

    assert added.returncode == 0, added.stderr
    assert (user_data / "keys" / "deepseek").read_text(encoding="utf-8") == f"{KEY}\n"
    assert {one.headers["authorization"] for one in model_server.received} == {f"Bearer {KEY}"}


async def test_a_back_end_is_added_listed_tested_chosen_and_removed(
    user_data: Path, model_server: ModelServer
) -> None:
    ScriptedOpenAI(model_server, 60_000).sends("yes")
    keys = user_data / "keys"
    keys.mkdir(parents=True)
    (keys / "mine").write_text(KEY, encoding="utf-8")
    (keys / "mine").chmod(0o600)
    user_data.chmod(0o700)

    url = f"{model_server.url}/v1"
    added = await run(user_data, "add", "mine", "--base-url", url, "--model", "qwen3-8b")
    async with over_stdio(user_data) as daemon:
        await daemon.call("app:ping")
        listed = await run(user_data, "list")
        as_json = await run(user_data, "list", "--json")
        tested = await run(user_data, "test")
        back = await run(user_data, "use", "default")
        removed = await run(user_data, "remove", "mine")
        again = await run(user_data, "remove", "mine")

    assert added.returncode == 0, added.stderr
    assert b"mine answers: qwen3-8b" in added.stdout
    assert model_server.received[0].headers["authorization"] == f"Bearer {KEY}"
    assert f"* mine  openai  qwen3-8b  {url}".encode() in listed.stdout
    assert json.loads(as_json.stdout)["backend"] == "mine"
    assert (tested.returncode, back.returncode, removed.returncode) == (0, 0, 0)
    assert not (keys / "mine").exists()
    assert (again.returncode, b"NOT_FOUND" in again.stderr) == (1, True)
    assert KEY.encode() not in added.stdout + added.stderr + listed.stdout + tested.stdout


async def test_a_local_server_needs_no_key_and_its_window_is_printed(user_data: Path) -> None:
    async with open_server(OllamaServer(len)) as server:
        added = await run(
            user_data, "add", "home", "--base-url", f"{server.url}/v1", "--model", "qwen3:8b"
        )
        native = await run(
            user_data, "add", "ollama", "--base-url", server.url, "--model", "qwen3:8b"
        )
        doctor = await to_thread.run_sync(creonowd, user_data, "doctor", "--json")

    assert added.returncode == native.returncode == 0, added.stderr + native.stderr
    assert b"window 4096" in added.stdout
    assert b"the model's window is 4096" in added.stdout
    found = {one["part"]: one["found"] for one in json.loads(doctor.stdout)["findings"]}
    assert found["ai"] == "ollama: ollama with qwen3:8b"
    assert not (user_data / "keys").exists()


async def test_the_doctor_says_that_a_window_is_too_small(user_data: Path) -> None:
    async with open_server(OllamaServer(len)) as server:
        words = ("add", "home", "--base-url", f"{server.url}/v1", "--model", "qwen3:8b")
        await run(user_data, *words, "--no-test")
        doctor = await to_thread.run_sync(creonowd, user_data, "doctor", "--json")
    nobody = await to_thread.run_sync(creonowd, user_data, "doctor", "--json")

    found = {one["part"]: one["found"] for one in json.loads(doctor.stdout)["findings"]}
    gone = {one["part"]: one for one in json.loads(nobody.stdout)["findings"]}
    assert "the model's window is 4096" in found["ai window"]
    assert (gone["ai"]["state"], "cannot be reached" in gone["ai"]["found"]) == ("note", True)


@pytest.mark.parametrize(
    ("words", "stdin", "code"),
    [
        (("add", "deepseek"), b"", "AI_NOT_CONFIGURED"),
        (("add", "deepseek"), "密钥\n".encode(), "AI_NOT_CONFIGURED"),
        (("add", "deepseek"), b"two words\n", "AI_NOT_CONFIGURED"),
        (("add", "deepseek"), b"k" * 10_000, "AI_NOT_CONFIGURED"),
        (("add", "nobody"), b"", "INVALID_ARGUMENT"),
        (("add", "ollama"), b"", "INVALID_ARGUMENT"),
        (("add", "../x", "--preset", "deepseek"), b"k", "INVALID_ARGUMENT"),
        (("add", "con", "--preset", "deepseek"), b"k", "INVALID_ARGUMENT"),
        (("add", "x", "--preset", "glm", "--base-url", "https://u:p@h"), b"k", "INVALID_ARGUMENT"),
        (("add", "x", "--preset", "glm", "--key-variable", "sk-x"), b"", "INVALID_ARGUMENT"),
        (("use", "nobody"), b"", "NOT_FOUND"),
        (("test", "nobody"), b"", "NOT_FOUND"),
    ],
)
async def test_what_cannot_be_added_is_reported_and_leaves_nothing(
    user_data: Path, words: tuple[str, ...], stdin: bytes, code: str
) -> None:
    done = await run(user_data, *words, stdin=stdin)

    assert done.returncode == 1
    assert f"[{code}]".encode() in done.stderr, done.stderr
    assert not list(user_data.glob("keys/*"))
    assert not (user_data / "settings.json").exists()


async def test_messages_are_in_the_language_of_the_terminal(user_data: Path) -> None:
    done = await run(user_data, "add", "deepseek", LANG="zh_CN.UTF-8", LC_ALL="")

    assert "没有 deepseek 的密钥" in done.stderr.decode()


async def test_the_environment_wins_over_what_was_chosen(user_data: Path) -> None:
    await run(
        user_data,
        *("add", "home", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--no-test"),
    )

    chosen = await run(user_data, "list")
    overruled = await run(user_data, "list", CREONOW_AI_PROVIDER="fake")
    refused = await run(user_data, "use", "home", CREONOW_AI_PROVIDER="fake")

    assert b"* home" in chosen.stdout
    assert b"* default" in overruled.stdout
    assert (b"no AI" in overruled.stderr, b"no AI" in chosen.stderr) == (True, False)
    assert b"CREONOW_AI_PROVIDER" in refused.stderr


@pytest.mark.skipif(os.name == "nt", reason="a terminal of POSIX")
async def test_a_key_that_is_typed_is_not_shown(user_data: Path, model_server: ModelServer) -> None:
    import pty

    def type_key() -> bytes:
        main, other = pty.openpty()
        command = [sys.executable, "-m", "creonowd", "ai", "add", "deepseek", "--no-test"]
        with subprocess.Popen(
            command,
            stdin=other,
            stdout=other,
            stderr=other,
            env=environment(CREONOW_USER_DATA_DIR=str(user_data)),
            start_new_session=True,
        ) as process:
            os.close(other)
            seen = b""
            while b"not shown" not in seen:
                seen += os.read(main, 1024)
            os.write(main, f"{KEY}\n".encode())
            try:
                while piece := os.read(main, 1024):
                    seen += piece
            except OSError:
                pass
            process.wait(60)
        os.close(main)
        return seen

    seen = await to_thread.run_sync(type_key)

    assert KEY.encode() not in seen
    assert (user_data / "keys" / "deepseek").read_text(encoding="utf-8") == f"{KEY}\n"


def test_every_preset_is_a_back_end_that_can_be_stored() -> None:
    check_backends(PRESETS)

    assert {"gemini", "deepseek", "qwen", "glm", "kimi", "openrouter"} <= PRESETS.keys()
    assert all(one.key_variable for one in PRESETS.values() if one.base_url.startswith("https:"))
