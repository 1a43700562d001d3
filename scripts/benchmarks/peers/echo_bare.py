"""The least a server can do: an asyncio protocol that decodes and encodes with msgspec."""

import asyncio
import sys
from typing import Any

import msgspec


class Envelope(msgspec.Struct):
    jsonrpc: str
    id: int
    method: str
    params: msgspec.Raw


decoder = msgspec.json.Decoder(Envelope)
encoder = msgspec.json.Encoder()


class Echo(asyncio.Protocol):
    def __init__(self) -> None:
        self._buffer = bytearray()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (end := self._buffer.find(b"\n")) >= 0:
            request = decoder.decode(self._buffer[:end])
            del self._buffer[: end + 1]
            params = msgspec.json.decode(request.params)
            reply = {"jsonrpc": "2.0", "id": request.id, "result": params}
            self._transport.write(encoder.encode(reply) + b"\n")


async def main() -> None:
    server = await asyncio.get_running_loop().create_unix_server(Echo, sys.argv[1])
    await server.serve_forever()


asyncio.run(main())
