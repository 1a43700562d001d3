"""What the browser may load: a handful of files of ours, under a strict policy. Knows no socket."""

from functools import cache
from http import HTTPStatus
from importlib.resources import files

import msgspec
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from creonowd.errors import CATALOGUE, WARNINGS

TYPES = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "json": "application/json; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def page(_connection: object, request: Request) -> Response | None:
    """Answer a plain request with one of the viewer's files, or None if it is none of them."""
    path = request.path.partition("?")[0]
    name = "index.html" if path == "/" else path.removeprefix("/")
    body = load().get(name)
    if body is None:
        return None
    headers = Headers(
        {
            "Content-Type": TYPES[name.rpartition(".")[2]],
            "Content-Length": str(len(body)),
            "Content-Security-Policy": POLICY.format(host=request.headers["Host"]),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Connection": "close",
        }
    )
    return Response(HTTPStatus.OK, "OK", headers, body)


@cache
def load() -> dict[str, bytes]:
    """Read every file once; blocks its thread the first time."""
    folder = files("creonowd.viewer") / "static"
    held = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    return held | {"codes.json": _codes()}


def _codes() -> bytes:
    """Spell every code of the catalogue in both languages, so that the page need not."""
    told = CATALOGUE | WARNINGS
    return msgspec.json.encode(
        {str(code): (one.chinese, one.english) for code, one in told.items()}
    )
