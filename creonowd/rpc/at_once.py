"""A large request read in one pass, envelope and payload together.

What is unusual in any way is left to `messages`, which reads twice and knows what is wrong.
"""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from creonowd.rpc.channel import Channel
from creonowd.rpc.messages import VERSION, Request
from creonowd.rpc.payload import NO_META, Payload, names_meta

LARGE = 64 * 1024
SEARCHED = 1024
_METHOD = re.compile(rb'"method"\s*:\s*"([^"\\]++)"')


def read_at_once(body: bytes | bytearray, channels: Mapping[str, Channel]) -> Request | None:
    """Read a request whose channel its first bytes name; None for all else."""
    named = _METHOD.search(body, 0, SEARCHED)
    channel = None if named is None else channels.get(named[1].decode("utf-8", "replace"))
    if channel is None or names_meta(body):
        return None
    try:
        read: Any = channel.message.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if read.jsonrpc != VERSION or read.method != channel.name:
        return None
    return Request(channel.name, msgspec.Raw(), read.id, Payload(read.params, NO_META, 0))
