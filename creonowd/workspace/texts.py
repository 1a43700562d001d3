"""What the bytes of a file say. Pure; knows UTF-8 and JSON, and no file."""

import codecs

import msgspec


def as_text(data: bytes) -> str | None:
    """Read UTF-8, with or without a byte-order mark; None if it is something else."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return None


def is_json(text: str) -> bool:
    """Tell whether a text is one JSON value."""
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
