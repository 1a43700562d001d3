"""Send many requests to a daemon at once, and ping it meanwhile; do as little as possible.

The job comes as JSON on standard input and the figures go to standard output. Replies are written
to a file and read by nobody before the clock has stopped. Imports the standard library only.
"""

import json
import selectors
import socket
import sys
import time
from pathlib import Path
from typing import Any

PAUSE_SECONDS = 0.002
PATIENCE_SECONDS = 240
RECEIVED_AT_ONCE = 1 << 20


class Stream:
    """One connection: when its requests were sent, and what came back."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.socket.setblocking(False)
        self.chunks: list[bytes] = []
        self.unsent = memoryview(b"")
        self.waiting = 0
        self.started = 0.0

    def send(self, lines: list[str]) -> None:
        """Begin to send requests, one per line."""
        self.unsent = memoryview("".join(f"{line}\n" for line in lines).encode())
        self.waiting += len(lines)
        self.started = time.perf_counter()
        self.flush()

    def flush(self) -> None:
        """Send as much as the other side takes."""
        while self.unsent:
            try:
                self.unsent = self.unsent[self.socket.send(self.unsent) :]
            except BlockingIOError:
                return

    def receive(self) -> list[float]:
        """Read what is there; return the milliseconds of each reply that is complete."""
        chunk = self.socket.recv(RECEIVED_AT_ONCE)
        if not chunk:
            raise SystemExit("The daemon hung up.")
        self.chunks.append(chunk)
        complete = chunk.count(b"\n")
        self.waiting -= complete
        return [1000 * (time.perf_counter() - self.started)] * complete


def main() -> None:
    """Do one job."""
    job: dict[str, Any] = json.load(sys.stdin)
    streams = [Stream(job["socket"]) for _ in range(job["connections"])]
    pinging = Stream(job["socket"])
    spent = time.process_time()
    shares = [job["lines"][number :: len(streams)] for number in range(len(streams))]
    milliseconds, pings = _exchange(streams, shares, pinging)
    spent = time.process_time() - spent
    Path(job["replies"]).write_bytes(b"".join(b"".join(stream.chunks) for stream in streams))
    json.dump({"milliseconds": milliseconds, "pings": pings, "cpu": spent}, sys.stdout)


def _exchange(
    streams: list[Stream], shares: list[list[str]], pinging: Stream
) -> tuple[list[float], list[float]]:
    ping = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "app:ping", "params": {}})
    milliseconds: list[float] = []
    pings: list[float] = []
    with selectors.DefaultSelector() as selector:
        for stream in (*streams, pinging):
            selector.register(stream.socket, selectors.EVENT_READ, stream)
        for stream, share in zip(streams, shares, strict=True):
            stream.send(share)
        end, next_ping = time.perf_counter() + PATIENCE_SECONDS, 0.0
        while any(stream.waiting for stream in streams):
            now = time.perf_counter()
            if now > end:
                raise SystemExit("Not everything was answered.")
            if not pinging.waiting and now >= next_ping:
                pinging.send([ping])
            for stream in streams:
                stream.flush()
            for key, _ in selector.select(PAUSE_SECONDS):
                stream: Stream = key.data
                times = stream.receive()
                if stream is pinging and times:
                    pings += times
                    next_ping = time.perf_counter() + PAUSE_SECONDS
                else:
                    milliseconds += times
    return milliseconds, pings


if __name__ == "__main__":
    main()
