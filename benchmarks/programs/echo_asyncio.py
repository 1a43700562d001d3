"""An echo server with the least work possible: an asyncio protocol that uses msgspec."""

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
        while (end := self._buffer.find(b"\r\n\r\n", 0, 100)) >= 0:
            length = int(self._buffer[16:end])
            if len(self._buffer) < end + 4 + length:
                return
            request = decoder.decode(self._buffer[end + 4 : end + 4 + length])
            del self._buffer[: end + 4 + length]
            params = msgspec.json.decode(request.params)
            reply = encoder.encode({"jsonrpc": "2.0", "id": request.id, "result": params})
            self._transport.write(b"Content-Length: %d\r\n\r\n%s" % (len(reply), reply))


async def main() -> None:
    server = await asyncio.get_running_loop().create_unix_server(Echo, sys.argv[1])
    await server.serve_forever()


asyncio.run(main())
