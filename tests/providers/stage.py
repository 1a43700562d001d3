"""A local HTTP server that plays an AI provider, scene by scene, and keeps what it was sent."""

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import msgspec
from anyio.abc import SocketAttribute, SocketStream

Write = Callable[[bytes], Awaitable[None]]


@dataclass
class Scene:
    """One reply: a status, headers, and pieces of a body; then it ends, is cut or stalls.

    A `slow` one says nothing until the stage is told to go on: not even its headers with
    `"headers"`, not a piece of its body with `"body"`.
    """

    pieces: list[bytes] = field(default_factory=list[bytes])
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict[str, str])
    stalls: bool = False
    cut: bool = False
    slow: str = ""


@dataclass
class Received:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]


class Stage:
    """Plays its scenes in order; the last one again and again. No tunnel through it leads on."""

    def __init__(self) -> None:
        self.url = ""
        self.scenes: list[Scene] = []
        self.received: list[Received] = []
        self.tunnels: list[str] = []
        self.hung_up = anyio.Event()
        self.playing = anyio.Event()
        self.asked = anyio.Event()
        self.go_on = anyio.Event()

    async def serve(self, stream: SocketStream) -> None:
        with contextlib.suppress(anyio.BrokenResourceError, anyio.EndOfStream):
            async with stream:
                while True:
                    await self._play(stream)

    async def _play(self, stream: SocketStream) -> None:
        method, received = await _read(stream)
        if method == "CONNECT":
            self.tunnels.append(received.path)
            raise anyio.EndOfStream
        self.received.append(received)
        scene = self.scenes.pop(0) if len(self.scenes) > 1 else self.scenes[0]
        head = {"content-type": "text/event-stream", "transfer-encoding": "chunked"} | scene.headers
        lines = [f"HTTP/1.1 {scene.status} Play", *(f"{k}: {v}" for k, v in head.items()), "", ""]
        self.asked.set()
        if scene.slow == "headers":
            await self.go_on.wait()
        await stream.send("\r\n".join(lines).encode())
        if scene.slow == "body":
            await self.go_on.wait()
        for piece in scene.pieces:
            await stream.send(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.playing.set()
        if scene.stalls:
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await stream.receive()
            self.hung_up.set()
        if scene.stalls or scene.cut:
            raise anyio.EndOfStream
        await stream.send(b"0\r\n\r\n")


@contextlib.asynccontextmanager
async def on_stage() -> AsyncGenerator[Stage]:
    """Open a stage on a port of its own."""
    stage = Stage()
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    stage.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, stage.serve)
        yield stage
        tasks.cancel_scope.cancel()


async def _read(stream: SocketStream) -> tuple[str, Received]:
    data = b""
    while b"\r\n\r\n" not in data:
        data += await stream.receive()
    head, _, body = data.partition(b"\r\n\r\n")
    first, *rest = head.decode().split("\r\n")
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in rest)}
    while len(body) < int(headers.get("content-length", "0")):
        body += await stream.receive()
    method, path, _ = first.split(" ")
    return method, Received(path, headers, msgspec.json.decode(body or b"{}"))
