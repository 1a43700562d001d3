"""An echo server on pygls: over stdio, or on the TCP port named in the first argument."""

import sys
from importlib import import_module
from typing import Any

server: Any = import_module("pygls.lsp.server").LanguageServer("echo", "1")


@server.feature("e2e:echo")
def echo(params: Any) -> Any:
    return {"value": params.value}


if len(sys.argv) > 1:
    server.start_tcp("127.0.0.1", int(sys.argv[1]))
else:
    server.start_io()
