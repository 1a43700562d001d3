"""What an E2E story in Python holds: an isolated daemon, projects, calls, events, logs.

The twin of protocol/electron/harness.mjs; the same names do the same things. Blocking and simple:
no story needs to know that the client beneath is asynchronous. Positions are code points, as in
Python itself.
"""

import contextlib
import json
import os
import signal
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Required, Self, TypedDict

import anyio
from anyio.from_thread import BlockingPortal, start_blocking_portal

from creonowd.daemon import endpoint
from creonowd.rpc.messages import Framing
from creonowd.testing.async_client import (
    PATIENCE,
    AsyncClient,
    HostHandler,
    RpcError,
    endpoints_of,
    over_socket,
    over_stdio,
    over_tcp,
)

CHAPTER = "一.md"
TEXT = "林远推开门，屋里没有人。\n\n他站了一会儿，听见楼上的脚步声。\n"
CONTINUE = "builtin:continue"


class NovelFolder:
    """A project of the daemon, its folder, and the payloads that name it.

    `cursor` is where the author is and what runs: fields of `context:assemble`.
    """

    def __init__(self, root: Path, project_id: str, **cursor: Any) -> None:
        self.root = root
        self.project_id = project_id
        self.params = {"projectId": project_id}
        self._cursor = {
            "skillId": CONTINUE,
            "documentId": CHAPTER,
            "cursorPosition": len(TEXT),
        } | cursor

    def put(self, path: str, content: str | bytes) -> Path:
        """Write a file of the project."""
        write_files(self.root, {path: content})
        return self.root / path

    def payload(self, **changes: Any) -> dict[str, Any]:
        """Return the payload of an assembly or a run."""
        return {**self.params, **self._cursor, **changes}


def write_files(root: Path, files: Mapping[str, str | bytes]) -> None:
    """Make a folder with these files (path → content), as an editor would write them."""
    root.mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


class StoryUsage(TypedDict, total=False):
    """Tokens that an answer is said to have taken."""

    inputTokens: Required[int]
    outputTokens: Required[int]
    cacheReadTokens: int
    cacheWriteTokens: int


class StoryStep(TypedDict, total=False):
    """One answer of the AI. Without `text` it answers with the prompt itself.

    It comes in pieces of `piece` characters with `delayMs` before each. `stall` and `fail` happen
    after `after` pieces; a stall lasts until the run is cancelled. `fail` is an error code, with
    `retryAfterMs` in its details. `unknown` are sampling parameters that the model does not know.
    """

    text: str | None
    piece: int
    delayMs: int
    after: int
    stall: bool
    fail: str
    retryAfterMs: int
    stop: Literal["end", "length", "refused"]
    usage: StoryUsage
    unknown: list[str]


class StoryViolation(TypedDict, total=False):
    """A constraint that the judge finds broken: its number in the prompt, from 1 on."""

    constraint: Required[int]
    quote: str
    confidence: float
    reason: str
    reasonEnglish: str


class StoryVerdict(TypedDict, total=False):
    """What the judge says of one output; a constraint that it does not name was kept."""

    violations: Required[list[StoryViolation]]
    unsure: list[int]


class StoryScript(TypedDict, total=False):
    """What the AI does from now on, call by call; it replaces what was not yet played.

    `steps` answer runs, `verdicts` answer as the judge: a string is sent as it is, also one that
    is no verdict. Without verdicts there is no model that judges.
    """

    steps: list[StoryStep]
    verdicts: list[StoryVerdict | str]
    verdictUsage: StoryUsage


POLL_SECONDS = 0.02
Predicate = Callable[[Any], bool]


class Harness:
    """One daemon with user data of its own, in a folder whose name is as awkward as a user's."""

    def __init__(
        self, home: Path, *, deterministic: bool = False, debug: bool = False, **environ: str
    ) -> None:
        self.home = home
        self.user_data = home / "user data 用户"
        self._environ = environ | {"CREONOW_USER_DATA_DIR": str(self.user_data)}
        if deterministic:
            self._environ["CREONOW_DETERMINISTIC"] = "1"
        if debug:
            self._environ["CREONOW_DEBUG"] = "1"
        self._stack = contextlib.ExitStack()
        self._portal: BlockingPortal | None = None
        self._client: AsyncClient | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Start the daemon and wait until it answers; also after `stop` or `kill`."""
        self.stop()
        self._portal = self._stack.enter_context(start_blocking_portal())
        opened = self._portal.wrap_async_context_manager(self._open())
        self._client = self._stack.enter_context(opened)
        self.call("app:ping")

    def stop(self) -> None:
        """Let the daemon finish and end."""
        self._stack.close()
        self._client = None

    def kill(self) -> None:
        """Kill the daemon as a crash would."""
        process = self._connected_client.process
        assert process is not None
        process.kill()
        self._on_loop(process.wait)

    def call(self, channel: str, payload: Any = None, *, seconds: float = PATIENCE) -> Any:
        """Call a channel as the owner; raises `RpcError`, or `ConnectionError` if the daemon has gone."""
        return self._on_loop(self._connected_client.call, channel, payload, seconds)

    def failure(self, channel: str, payload: Any = None) -> RpcError:
        """Call a channel and return the error that must come."""
        return self._on_loop(self._connected_client.failure, channel, payload)

    def invoke(self, channel: str, payload: Any = None) -> dict[str, Any]:
        """Call a channel as the owner and get the IPC envelope."""
        return self.call("ipc:invoke", {"channel": channel, "payload": payload or {}})

    def handle(self, method: str, handler: HostHandler) -> None:
        """Answer a call that the daemon makes."""
        self._connected_client.handlers[method] = handler

    def make_project(
        self, name: str = "长夜", files: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Make a folder with these files (path → text) and register it as a project."""
        root = self.home / "projects" / name
        write_files(root, files or {})
        return self.call("project:create", {"rootPath": str(root), "name": name})

    def make_novel(
        self, files: Mapping[str, str | bytes] | None = None, *, root: Path | None = None
    ) -> "StoryNovel":
        """Make a project with these files, or with one chapter; its cursor is at the end of the first."""
        place = self.home / "projects" / "小说 novel" if root is None else root
        return StoryNovel(self, place, {CHAPTER: TEXT} if files is None else files)

    def script(self, script: StoryScript) -> None:
        """Set what the AI says from now on, call by call, in runs and as a judge."""
        verdicts = [
            verdict if isinstance(verdict, str) else json.dumps(verdict, ensure_ascii=False)
            for verdict in script.get("verdicts", ())
        ]
        self.call("e2e:ai:script", {**script, "verdicts": verdicts})

    def event(
        self, name: str, *, where: Predicate = bool, seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait for the next event of this name that fits, and take it."""
        return self._on_loop(self._connected_client.event, name, where, seconds)

    def logs(self, event: str | None = None) -> list[dict[str, Any]]:
        """Read what the daemon has logged, oldest first; of one event, if it is named."""
        file = self.user_data / "logs" / "main.log"
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        whole = text[: text.rfind("\n") + 1]
        lines = [json.loads(line) for line in whole.splitlines()]
        return [line for line in lines if event in {None, line["event"]}]

    def log(
        self, event: str, *, where: Predicate = bool, seconds: float = PATIENCE
    ) -> dict[str, Any]:
        """Wait until the daemon has logged this event, and return the line."""
        end = time.monotonic() + seconds
        while True:
            found = next(filter(where, self.logs(event)), None)
            if found is not None:
                return found
            if time.monotonic() > end:
                raise TimeoutError(f"{event} was not logged in {seconds} s")
            time.sleep(POLL_SECONDS)

    def _open(self) -> contextlib.AbstractAsyncContextManager[AsyncClient]:
        return over_stdio(self.user_data, Framing.LINES, **self._environ)

    @property
    def _connected_client(self) -> AsyncClient:
        assert self._client is not None, "the harness is not started"
        return self._client

    def _on_loop(self, function: Callable[..., Any], *arguments: Any) -> Any:
        assert self._portal is not None
        try:
            return self._portal.call(function, *arguments)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise ConnectionError("the daemon has gone") from None


class StoryNovel(NovelFolder):
    """A novel of a harness: what the model would see of it, what a run writes, where its page is."""

    def __init__(self, daemon: Harness, root: Path, files: Mapping[str, str | bytes]) -> None:
        write_files(root, files)
        project = daemon.call("project:create", {"rootPath": str(root)})
        document = next((path for path in files if not path.startswith(".creonow/")), CHAPTER)
        # A text that is no UTF-8 is read with replacements; its end is never further than this.
        super().__init__(
            root,
            project["projectId"],
            documentId=document,
            cursorPosition=len(_text(files.get(document, ""))),
        )
        self.daemon = daemon

    def assemble(self, **changes: Any) -> Any:
        """Assemble the context at the cursor; `changes` are fields of `context:assemble`."""
        return self.daemon.call("context:assemble", self.payload(**changes))

    def inspect(self, **changes: Any) -> Any:
        """Return what was kept, shortened and left out, and why; the daemon must run with `debug`."""
        return self.daemon.call("context:inspect", self.payload(debugMode=True, **changes))

    def run(self, **changes: Any) -> Any:
        """Run the skill at the cursor and wait for its end."""
        return self.daemon.call("ai:skill:run", self.payload(**changes))

    def wait_for_index(self) -> None:
        """Return when every document of the novel can be found, so that no assembly warns of it."""
        place = {"documentId": self.payload()["documentId"], "cursorPosition": 0}
        self.daemon.call("context:retrieve", {**self.params, **place, "wait": True, "limit": 1})

    def constrain(self, *texts: str) -> None:
        """Set the constraints of the novel, in this order."""
        constraints = {"version": 1, "items": list(texts)}
        self.daemon.call("constraints:set", {**self.params, "constraints": constraints})

    def address(self) -> str:
        """Return an address of the viewer on this novel; it works once."""
        return str(self.daemon.call("viewer:open", self.params)["url"])


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else content.decode("utf-8", "replace")


class JoinedHarness(Harness):
    """A look into the daemon that an app under test runs, as its owner; `stop` leaves it running."""

    def __init__(self, home: Path, user_data: Path) -> None:
        super().__init__(home)
        self.user_data = user_data

    def kill(self) -> None:
        """Kill the app's daemon as a crash would, and wait until it is gone."""
        found = endpoint.read(self.user_data)
        assert found is not None
        os.kill(found.pid, signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
        self._on_loop(self._connected_client.closed.wait)

    def _open(self) -> contextlib.AbstractAsyncContextManager[AsyncClient]:
        return _over_endpoint(self.user_data)


@contextlib.asynccontextmanager
async def _over_endpoint(user_data: Path) -> AsyncGenerator[AsyncClient]:
    ways = await endpoints_of(user_data)
    if "unix" in ways:
        reached = over_socket(Path(ways["unix"].address))
    else:
        reached = over_tcp(ways["tcp"].address, ways["tcp"].token or None)
    async with reached as client:
        yield client
