"""The texts in a conversation, names of fields too: taken out to be redacted, and put back.

Pure; knows JSON values. What is a secret is for others to say.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from creonowd.redaction import PLACEHOLDER
from creonowd.redaction.labels import is_secret_name


def texts_of(value: Any, name: str = "") -> Iterator[str]:
    """Find every text; one that stands under a secret's name comes as `name=text`."""
    if isinstance(value, str):
        yield _lead(name) + value
    elif isinstance(value, dict):
        for key, inner in cast("dict[str, Any]", value).items():
            yield key
            yield from texts_of(inner, key)
    elif isinstance(value, list):
        for inner in cast("list[Any]", value):
            yield from texts_of(inner, name)


def with_texts(value: Any, texts: Iterable[str]) -> Any:
    """Put texts in place of those that `texts_of` found, in the same order."""
    return _put(value, iter(texts), "")


def restored(sent: Any, before: Any, show: Callable[[str], str]) -> Any:
    """Undo in `sent` what a client could only see as `show` makes it of the texts in `before`."""
    texts = list(texts_of(sent))
    if not any(PLACEHOLDER in text for text in texts):
        return sent
    known: defaultdict[str, deque[str]] = defaultdict(deque)
    for text in texts_of(before):
        known[show(text)].append(text)
    return with_texts(sent, (_first(known, text) for text in texts))


def _first(known: dict[str, deque[str]], text: str) -> str:
    """Take the texts that look alike in the order in which they stood, each once."""
    same = known.get(text) if PLACEHOLDER in text else None
    return same.popleft() if same else text


def _put(value: Any, texts: Iterator[str], name: str) -> Any:
    if isinstance(value, str):
        return next(texts).removeprefix(_lead(name))
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value).items()
        return {next(texts): _put(inner, texts, key) for key, inner in fields}
    if isinstance(value, list):
        return [_put(inner, texts, name) for inner in cast("list[Any]", value)]
    return value


def _lead(name: str) -> str:
    return f"{name}=" if name and is_secret_name(name) else ""
