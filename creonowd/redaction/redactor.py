"""Take secrets out of texts, and out of values of any type; return what was found.

Values are what the log writes and what tools return.
"""

import dataclasses
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cached_property, lru_cache
from heapq import merge
from itertools import accumulate, islice
from operator import itemgetter
from pathlib import Path, PurePath
from typing import Any, NamedTuple, cast
from uuid import UUID

import msgspec

from creonowd.model import Model
from creonowd.redaction.rules import (
    NEAR,
    PLACEHOLDER,
    RankedSpan,
    RankedSpans,
    Scanner,
    SecretSpan,
    anchor_spans,
    make_scanner,
    normalise,
    original_position,
    scan,
)

MOST_PASSES = 8
DEEPEST = 16
# Longer texts are not cached. A hash has this length, and the same hashes come in many log lines.
SHORT_TEXT = 64
_SPANS_AT_ONCE = 4096
CACHED_TEXTS = 4096

_STEP = re.compile(r"[^/\\]+")


class RedactionEvidence(Model):
    """How often one pattern was replaced in one source; never what it replaced."""

    pattern_id: str
    """The kind of secret, such as `openai_api_key_sk`; docs/codes.md lists them."""
    source_ref: str
    """The file, document or source in which it stood."""
    match_count: int
    """How often it was replaced there."""


class Redacted(NamedTuple):
    """A text without its secrets, and what was taken out of it, sorted by pattern."""

    text: str
    evidence: tuple[RedactionEvidence, ...]


class Redactor:
    """The rules for one user: the general ones, and the user's home folder and configured keys.

    Safe to share between threads. The first call builds the automaton; all others are cheap.
    """

    def __init__(
        self, home: Path | None = None, secrets: Sequence[str] = (), *, sensitive: bool = False
    ) -> None:
        self._home = home
        self._secrets = tuple(secrets)
        self._sensitive = sensitive

    def sensitive(self) -> "Redactor":
        """Make one for the same user that also takes out personal data and random strings."""
        return Redactor(self._home, self._secrets, sensitive=True)

    @property
    def revision(self) -> int:
        """A number that changes with what is a secret."""
        return len(self._secrets)

    def also_hide(self, secret: str) -> None:
        """Take one more secret out of all texts from now on."""
        if secret not in self._secrets:
            self._secrets = (*self._secrets, secret)
            self.__dict__.pop("_scanner", None)

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        """Replace every secret by the placeholder; doing it again changes nothing."""
        spans, clean = self._search(text)
        return Redacted(clean, self._evidence(spans, source_ref) if spans else ())

    def redact_texts(
        self, texts: Iterable[tuple[str, str]]
    ) -> tuple[list[str], list[RedactionEvidence]]:
        """Redact `(sourceRef, text)` pairs; return the texts in order, and the evidence."""
        clean_texts: list[str] = []
        counts = Counter[tuple[str, str]]()
        for source_ref, text in texts:
            clean, evidence = self.redact(text, source_ref)
            clean_texts.append(clean)
            for piece in evidence:
                counts[piece.source_ref, piece.pattern_id] += piece.match_count
        return clean_texts, [
            RedactionEvidence(
                pattern_id=pattern, source_ref=self.redact_name(source), match_count=count
            )
            for (source, pattern), count in sorted(counts.items())
        ]

    def find(self, text: str) -> list[SecretSpan]:
        """List what `redact` would replace, in order, none overlapping another."""
        spans, _ = self._search(text)
        names = self._scanner.names
        return [SecretSpan(start, end, names[rank]) for start, end, rank in spans]

    def hide_secrets(self, text: str) -> str:
        """Replace secrets and leave paths, for texts that exist to name one."""
        spans, clean = self._search(text)
        names = self._scanner.names
        if not any(names[rule].endswith("_abs_path") for _, _, rule in spans):
            return clean
        secrets = RankedSpans()
        for start, end, rule in spans:
            if not names[rule].endswith("_abs_path"):
                secrets.append((start, end, rule))
                continue
            for step in _STEP.finditer(text, start, end):  # the path may have covered a secret
                found, _ = self._search(step[0])
                at = step.start()
                secrets.extend((at + first, at + last, other) for first, last, other in found)
        return replace_spans(text, secrets)

    def redact_name(self, path: str) -> str:
        """Replace secrets in each name of a relative path, so that each can be found again by what is left."""
        return "/".join(self.hide_secrets(part) for part in path.split("/"))

    def are_clean(self, texts: Sequence[str]) -> list[bool]:
        """Return of each text whether it has nothing that any rule could begin with.

        One pass over many small texts instead of one each. Any other text may be clean too; only
        `redact` can decide.
        """
        starts = [0, *accumulate(len(text) + 1 for text in texts)]
        normalised = normalise("\n".join(texts))
        clean = [True] * len(texts)
        original = original_position(normalised)
        for start, end in anchor_spans(self._scanner, normalised.text):
            first = bisect_right(starts, original(start)) - 1
            last = bisect_right(starts, max(original(end) - 1, 0)) - 1
            clean[first : last + 1] = [False] * len(clean[first : last + 1])
        return clean

    def _evidence(
        self, spans: Sequence[RankedSpan], source_ref: str
    ) -> tuple[RedactionEvidence, ...]:
        names, counts = self._scanner.names, Counter[str]()
        for rank, count in Counter(map(itemgetter(2), spans)).items():
            counts[names[rank]] += count
        return tuple(
            RedactionEvidence(pattern_id=name, source_ref=source_ref, match_count=counts[name])
            for name in sorted(counts)
        )

    def _search(self, text: str) -> tuple[RankedSpans, str]:
        """Find all secrets; search again without them, as only then others may be recognised."""
        spans = self._scan(text)
        clean = replace_spans(text, spans)
        for _ in range(MOST_PASSES):
            more = self._scan(clean, spans) if spans else spans
            if not more:
                break
            spans = _unite(spans, more)
            clean = replace_spans(text, spans)
        return spans, clean

    def _scan(self, text: str, replaced: Sequence[RankedSpan] = ()) -> RankedSpans:
        """Scan the text once; only near the spans that are `replaced` in it, if these are few."""
        normalised = normalise(text)
        near = replaced and not normalised.disguise and len(replaced) * NEAR < len(text)
        spans = scan(self._scanner, normalised.text, placeholder_starts(replaced) if near else None)
        if not spans or not normalised.disguise:
            return spans
        original = original_position(normalised)
        return RankedSpans((original(start), original(end), rank) for start, end, rank in spans)

    @cached_property
    def _scanner(self) -> Scanner:
        from creonowd.redaction.all_rules import rules_for

        return make_scanner(rules_for(self._home, self._secrets, sensitive=self._sensitive))


_general = Redactor()


def redact(text: str, source_ref: str = "") -> Redacted:
    """Replace what is a secret for any user, without a home folder and configured keys."""
    return _general.redact(text, source_ref)


def replace_spans(text: str, spans: Sequence[RankedSpan]) -> str:
    """Put the placeholder in place of every span."""
    if not spans:
        return text
    # CPython adds to a text that nobody else has in its place: a StringIO, or a list that is joined,
    # has the whole text twice at its end. A few thousand spans at a time, as each takes a while.
    replaced, left, done = "", iter(spans), 0
    while some := list(islice(left, _SPANS_AT_ONCE)):
        parts: list[str] = []
        for start, end, _ in some:
            parts += (text[done:start], PLACEHOLDER)
            done = end
        replaced += "".join(parts)
    replaced += text[done:]
    return replaced


def placeholder_starts(spans: Sequence[RankedSpan]) -> list[int]:
    """List where the placeholders begin once the spans are replaced."""
    return [start + shift for (start, _, _), shift in zip(spans, _shifts(spans), strict=False)]


def _shifts(spans: Sequence[RankedSpan]) -> list[int]:
    """List how far the text before, between and after the spans moves when they are replaced."""
    growth = (len(PLACEHOLDER) - (end - start) for start, end, _ in spans)
    return list(accumulate(growth, initial=0))


def _unite(spans: RankedSpans, more: RankedSpans) -> RankedSpans:
    """Add spans that were found in the text where `spans` are replaced."""
    united = RankedSpans()
    both = RankedSpans(merge(spans, sorted(_in_original(spans, more))))
    for start, end, rank in both:
        if united and start < united[-1][1]:
            first, last, best = united.pop()
            united.append((first, max(last, end), best))
        else:
            united.append((start, end, rank))
    return united


def _in_original(spans: Sequence[RankedSpan], more: Sequence[RankedSpan]) -> list[RankedSpan]:
    """Move spans from the text where others are replaced to the original one.

    A position inside a placeholder becomes that end of its span which takes in more.
    """
    shifts, starts = _shifts(spans), placeholder_starts(spans)

    def original(at: int, before: int) -> Sequence[int]:
        if before and at < starts[before - 1] + len(PLACEHOLDER):
            return spans[before - 1][:2]
        return at - shifts[before], at - shifts[before]

    return [
        (
            original(start, bisect_right(starts, start))[0],
            original(end, bisect_left(starts, end))[1],
            rank,
        )
        for start, end, rank in more
    ]


_general = Redactor()
_Plain = bool | int | float | complex | date | time | timedelta | Decimal | None


def redact_event(_logger: Any, _method: str, event: Any) -> Any:
    """Redact a structlog event, before or after it is rendered."""
    return redact_value(event)


def event_redactor(redactor: Redactor) -> Callable[[Any, str, Any], Any]:
    """Make a `redact_event` for one user's home folder and keys."""
    return lambda _logger, _method, event: redact_value(event, redactor)


def redact_value(value: Any, redactor: Redactor = _general) -> Any:
    """Redact every string in a value, keys too, at any depth, and any value of a secret name.

    Structs become dicts, other objects their redacted text. What is nested deeper than anyone
    reads, or inside itself, becomes the placeholder.
    """
    return _redact(value, redactor, frozenset())


def _redact(value: Any, redactor: Redactor, above: frozenset[int]) -> Any:
    if type(value) is int or type(value) is float:
        return value
    if isinstance(value, str):
        return _redact_text(value, redactor)
    if isinstance(value, _Plain):
        return value
    if isinstance(value, bytes | bytearray):
        return redactor.redact(value.decode(errors="replace")).text.encode(errors="replace")
    if id(value) in above or len(above) >= DEEPEST:
        return PLACEHOLDER
    return _redact_parts(value, redactor, above | {id(value)})


def _redact_text(text: str, redactor: Redactor) -> str:
    """Redact a text; short ones are cached, as names of events and fields come with every line."""
    return _redact_short(redactor, text) if len(text) <= SHORT_TEXT else redactor.redact(text).text


@lru_cache(maxsize=CACHED_TEXTS)
def _redact_short(redactor: Redactor, text: str) -> str:
    return redactor.redact(text).text


def _redact_parts(value: Any, redactor: Redactor, above: frozenset[int]) -> Any:
    fields = _fields(value)
    if fields is not None:
        return _redact_fields(fields, redactor, above)
    if isinstance(value, list | tuple | set | frozenset):
        items = _redact_items(cast("Iterable[Any]", value), redactor, above)
        return tuple(items) if isinstance(value, tuple) else items
    if isinstance(value, Enum):
        return _redact(value.value, redactor, above)
    return redactor.redact(_text(value)).text


def _fields(value: Any) -> Mapping[Any, Any] | None:
    """Return the fields of a value that has names for them, by name."""
    if isinstance(value, Mapping):
        return cast("Mapping[Any, Any]", value)
    if isinstance(value, msgspec.Struct):
        return {name: getattr(value, name) for name in value.__struct_fields__}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    as_dict = getattr(cast("Any", value), "_asdict", None)
    return as_dict() if isinstance(value, tuple) and as_dict else None


def _redact_fields(
    fields: Mapping[Any, Any], redactor: Redactor, above: frozenset[int]
) -> dict[Any, Any]:
    is_pair = _is_secret_name(fields.get("name", fields.get("key")))
    return {
        _redact_key(key, redactor): _redact_item(
            key, item, redactor, above, hidden=is_pair and key == "value"
        )
        for key, item in fields.items()
    }


def _redact_items(items: Iterable[Any], redactor: Redactor, above: frozenset[int]) -> list[Any]:
    """Redact a sequence; a pair such as `("Authorization", "…")` is a name and its value."""
    listed = list(items)
    if len(listed) == 2 and _is_secret_name(listed[0]):
        return [listed[0], _redact_item(listed[0], listed[1], redactor, above)]
    return [_redact(item, redactor, above) for item in listed]


def _redact_item(
    name: Any, item: Any, redactor: Redactor, above: frozenset[int], *, hidden: bool = False
) -> Any:
    is_empty = item is None or isinstance(item, bool) or (isinstance(item, str) and not item)
    if not is_empty and (hidden or _is_secret_name(name)):
        return PLACEHOLDER
    return _redact(item, redactor, above)


def _redact_key(key: Any, redactor: Redactor) -> Any:
    if type(key) is str:
        return _redact_text(key, redactor)
    return key if isinstance(key, _Plain) else _redact_text(_text(key), redactor)


def _is_secret_name(name: Any) -> bool:
    if isinstance(name, bytes):
        return _is_secret_name_text(name.decode(errors="replace"))
    return isinstance(name, str) and _is_secret_name_text(name)


@lru_cache(maxsize=CACHED_TEXTS)
def _is_secret_name_text(name: str) -> bool:
    from creonowd.redaction.secret_names import is_secret_name

    return is_secret_name(name)


def _text(value: Any) -> str:
    if isinstance(value, BaseException):
        notes = cast("list[str]", getattr(value, "__notes__", []))
        return "\n".join([f"{type(value).__name__}: {value}", *notes])
    return str(value) if isinstance(value, str | PurePath | UUID) else repr(value)
