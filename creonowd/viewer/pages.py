"""The files of the viewer as HTTP responses, under a strict content security policy."""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
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
    "default-src 'none'; script-src 'self' '{imports}'; style-src 'self'; img-src 'self'; "
    "connect-src 'self' ws://{host}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
STATIC = files("creonowd.viewer") / "static"
VENDOR = "vendor"
_IMPORT_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)


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
            "Content-Security-Policy": POLICY.format(
                host=request.headers["Host"], imports=_import_map_hash()
            ),
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
    """Return every file by its path; the first call reads the disk."""
    own = {file.name: file for file in STATIC.iterdir()}
    vendored = {f"{VENDOR}/{file.name}": file for file in (STATIC / VENDOR).iterdir()}
    contents = {
        path: file.read_bytes()
        for path, file in (own | vendored).items()
        if path.rpartition(".")[2] in TYPES
    }
    return contents | {"codes.json": _codes()}


@cache
def _import_map_hash() -> str:
    """Return the hash by which the policy allows the import map, the page's only inline script."""
    # A browser hashes what its parser read, and that has no carriage returns.
    found = _IMPORT_MAP.search(load()["index.html"].replace(b"\r\n", b"\n"))
    text = b"" if found is None else found[1]
    return f"sha256-{b64encode(sha256(text).digest()).decode()}"


def _codes() -> bytes:
    """Return every code of the catalogue with its texts in both languages, as JSON."""
    texts = CATALOGUE | WARNINGS
    return msgspec.json.encode(
        {str(code): (one.chinese, one.english) for code, one in texts.items()}
    )
