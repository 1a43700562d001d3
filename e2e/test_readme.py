"""Story: a newcomer types what the README shows, and sees what it shows."""

import re
import signal
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from subprocess import DEVNULL

import anyio
import pytest
from anyio.abc import ByteReceiveStream, Process

from testing.clients import PATIENCE, environment
from testing.providers import ScriptedOpenAI, open_model_server

ROOT = Path(__file__).resolve().parents[1]
CHANGES = re.compile(r'("(?:pid|nowMs)": ?)\d+')
ADDRESS = re.compile(rb"http://127\.0\.0\.1:\d+/#token=")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
KEY = "sk-" + "0123456789abcdef" * 2
# They stay until they are interrupted, and print an address first.
LASTING = ("./scripts/run", "./scripts/run view --project ~/my-novel")


def commands() -> Iterator[tuple[str, str]]:
    """Read every command of the README, each with what it prints, if that is shown."""
    for block in BLOCK.findall((ROOT / "README.md").read_text(encoding="utf-8")):
        for step in block.split("$ ")[1:]:
            command, _, printed = step.partition("\n")
            yield command.partition("  #")[0].strip(), printed


def test_the_first_command_stands_on_the_first_screen() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    assert any(line.startswith("$ ") for line in text.splitlines()[:12])
    assert len(text.splitlines()) < 100


def test_every_page_is_listed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")

    pages = (path.name for path in (ROOT / "docs").glob("*.md"))
    assert [name for name in pages if f"docs/{name}" not in text] == []


@pytest.fixture
def heard_interrupts() -> Generator[None]:
    """Undo that Ctrl-C is ignored, as it is by what a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="the commands are for a POSIX shell")
@pytest.mark.usefixtures("heard_interrupts")
async def test_every_command_runs_as_printed(tmp_path: Path) -> None:
    shown = list(commands())
    environ = environment(HOME=str(tmp_path), DEEPSEEK_API_KEY=KEY)
    async with open_model_server() as server:
        ScriptedOpenAI(server, 60_000).sends("yes")
        for command, printed in shown:
            calls = " ai add " in command
            words = f"{command} --base-url {server.url}" if calls else command
            # The daemon of a command that was interrupted may still be ending.
            place = f"data {LASTING.index(command)}" if command in LASTING else "data"
            with anyio.fail_after(PATIENCE * 2):
                process = await anyio.open_process(
                    words.replace("./scripts/", f"exec {sys.executable} scripts/"),
                    cwd=ROOT,
                    env=environ | {"CREONOW_USER_DATA_DIR": str(tmp_path / place)},
                    stdin=DEVNULL,
                )
                if command in LASTING:
                    await see_an_address(process)
                else:
                    said = await finish(process)
                    assert not printed or CHANGES.sub(r"\1#", said) == CHANGES.sub(r"\1#", printed)

    assert {command for command, _ in shown} > set(LASTING)


async def see_an_address(process: Process) -> None:
    """Wait for the address of a page, then interrupt as Ctrl-C does."""
    assert process.stdout is not None
    said = b""
    while not ADDRESS.search(said):
        said += await process.stdout.receive()
    process.send_signal(signal.SIGINT)
    await process.wait()


async def finish(process: Process) -> str:
    """Wait until a command has ended well, and return what it printed."""
    assert process.stdout is not None
    assert process.stderr is not None
    said = {"out": b"", "err": b""}

    async def read(stream: ByteReceiveStream, name: str) -> None:
        async for piece in stream:
            said[name] += piece

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, process.stdout, "out")
        tasks.start_soon(read, process.stderr, "err")
    assert await process.wait() == 0, said["err"].decode()
    return said["out"].decode()
