"""Replace the secrets of a text and count them by pattern."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from creonowd.model import Model
from creonowd.redaction.rules import PLACEHOLDER, RankedSpan, SecretSpan

if TYPE_CHECKING:
    from creonowd.redaction.scanner import Scanner

MOST_PASSES = 8


class RedactionEvidence(Model):
    """How often one pattern was replaced in one source; never what it replaced."""

    pattern_id: str
    source_ref: str
    match_count: int


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

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        """Replace every secret by the placeholder; doing it again changes nothing."""
        spans, clean = self._search(text)
        return Redacted(clean, self._evidence(spans, source_ref) if spans else ())

    def find(self, text: str) -> list[SecretSpan]:
        """List what `redact` would replace, in order, none overlapping another."""
        spans, _ = self._search(text)
        names = self._scanner.names
        return [SecretSpan(start, end, names[rank]) for start, end, rank in spans]

    def are_clean(self, texts: Sequence[str]) -> list[bool]:
        """Return of each text whether it has nothing that any rule could begin with.

        One pass over many small texts instead of one each. Any other text may be clean too; only
        `redact` can decide.
        """
        from creonowd.redaction.normalise import normalise, original_position
        from creonowd.redaction.scanner import anchor_spans

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

    def _search(self, text: str) -> tuple[list[RankedSpan], str]:
        """Find all secrets; search again without them, as only then others may be recognised."""
        spans = self._scan(text)
        clean = replace_spans(text, spans)
        for _ in range(MOST_PASSES):
            more = self._scan(clean, spans) if spans else []
            if not more:
                break
            spans = _unite(spans, more)
            clean = replace_spans(text, spans)
        return spans, clean

    def _scan(self, text: str, replaced: Sequence[RankedSpan] = ()) -> list[RankedSpan]:
        """Scan the text once; only near the spans that are `replaced` in it, if these are few."""
        from creonowd.redaction.normalise import normalise, original_position
        from creonowd.redaction.scanner import NEAR, scan

        normalised = normalise(text)
        near = replaced and not normalised.disguise and len(replaced) * NEAR < len(text)
        spans = scan(self._scanner, normalised.text, placeholder_starts(replaced) if near else None)
        if not spans or not normalised.disguise:
            return spans
        original = original_position(normalised)
        return [(original(start), original(end), rank) for start, end, rank in spans]

    @cached_property
    def _scanner(self) -> "Scanner":
        from creonowd.redaction.all_rules import rules_for
        from creonowd.redaction.scanner import make_scanner

        return make_scanner(rules_for(self._home, self._secrets, sensitive=self._sensitive))


_general = Redactor()


def redact(text: str, source_ref: str = "") -> Redacted:
    """Replace what is a secret for any user, without a home folder and configured keys."""
    return _general.redact(text, source_ref)


def replace_spans(text: str, spans: Sequence[RankedSpan]) -> str:
    """Put the placeholder in place of every span."""
    if not spans:
        return text
    kept: list[str] = []
    done = 0
    for start, end, _ in spans:
        kept.append(text[done:start])
        done = end
    return PLACEHOLDER.join([*kept, text[done:]])


def placeholder_starts(spans: Sequence[RankedSpan]) -> list[int]:
    """List where the placeholders begin once the spans are replaced."""
    return [start + shift for (start, _, _), shift in zip(spans, _shifts(spans), strict=False)]


def _shifts(spans: Sequence[RankedSpan]) -> list[int]:
    """List how far the text before, between and after the spans moves when they are replaced."""
    growth = (len(PLACEHOLDER) - (end - start) for start, end, _ in spans)
    return list(accumulate(growth, initial=0))


def _unite(spans: Sequence[RankedSpan], more: Sequence[RankedSpan]) -> list[RankedSpan]:
    """Add spans that were found in the text where `spans` are replaced."""
    united: list[RankedSpan] = []
    for start, end, rank in sorted([*spans, *_in_original(spans, more)]):
        if united and start < united[-1][1]:
            first, last, best = united[-1]
            united[-1] = first, max(last, end), best
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
