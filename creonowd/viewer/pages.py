"""The files of the viewer as HTTP responses, under a strict content security policy."""

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
    """Return the response with one of the viewer's files, or None if the path is none of them."""
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
    """Return every file by name; the first call reads the disk."""
    folder = files("creonowd.viewer") / "static"
    contents = {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
    return contents | {"codes.json": _codes()}


def _codes() -> bytes:
    """Return every code of the catalogue with its texts in both languages, as JSON."""
    texts = CATALOGUE | WARNINGS
    return msgspec.json.encode(
        {str(code): (one.chinese, one.english) for code, one in texts.items()}
    )
