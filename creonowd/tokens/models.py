"""Which encoding a model counts with. Knows names only; loads nothing."""

from typing import NamedTuple

DEFAULT_ENCODING = "o200k_base"

_PREFIXES = (
    ("gpt-4o", "o200k_base"),
    ("gpt-4.1", "o200k_base"),
    ("gpt-4.5", "o200k_base"),
    ("gpt-5", "o200k_base"),
    ("gpt-oss", "o200k_base"),
    ("chatgpt-4o", "o200k_base"),
    ("o1", "o200k_base"),
    ("o3", "o200k_base"),
    ("o4", "o200k_base"),
    ("gpt-4", "cl100k_base"),
    ("gpt-3.5", "cl100k_base"),
    ("gpt-35", "cl100k_base"),
    ("text-embedding-3", "cl100k_base"),
    ("text-embedding-ada-002", "cl100k_base"),
    ("davinci-002", "cl100k_base"),
    ("babbage-002", "cl100k_base"),
)


class Match(NamedTuple):
    """An encoding, and whether it is really the one the model uses."""

    encoding: str
    exact: bool


def encoding_for(model: str | None, otherwise: str = DEFAULT_ENCODING) -> Match:
    """Find the model's encoding; a model without a public table gets `otherwise`, inexactly.

    Without a model there is nothing to miss, so `otherwise` is exact then.
    """
    if not model:
        return Match(otherwise, exact=True)
    name = model.lower().rpartition("/")[2].removeprefix("ft:")
    found = next((encoding for prefix, encoding in _PREFIXES if _names(name, prefix)), None)
    return Match(otherwise, exact=False) if found is None else Match(found, exact=True)


def _names(name: str, prefix: str) -> bool:
    rest = name.removeprefix(prefix)
    return name == prefix or (rest != name and not rest[0].isalnum())
