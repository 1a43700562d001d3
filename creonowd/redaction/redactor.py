"""Text in, redacted text and evidence out.

Knows what was asked for and what is told about it; what to look for stands in the rules.
"""

import gc
from bisect import bisect_right
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from creonowd.model import Model
from creonowd.redaction.rules import Finding, Stretch, placeholders, replaced, united

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
    """The rules for one user: everyone's, and this user's home folder and configured keys.

    Safe to share between threads. The first call builds the automaton; all others are cheap.
    """

    def __init__(
        self, home: Path | None = None, secrets: Sequence[str] = (), *, sensitive: bool = False
    ) -> None:
        self._home = home
        self._secrets = tuple(secrets)
        self._sensitive = sensitive

    def widened(self) -> "Redactor":
        """Make one for the same user that takes out more than usual."""
        return Redactor(self._home, self._secrets, sensitive=True)

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        """Replace every secret by the placeholder; doing it again changes nothing."""
        with _undisturbed():
            found, clean = self._search(text)
            return Redacted(clean, self._evidence(found, source_ref) if found else ())

    def find(self, text: str) -> list[Stretch]:
        """List what `redact` would replace, in order, none overlapping another."""
        with _undisturbed():
            found, _ = self._search(text)
            names = self._scanner.names
            return [Stretch(start, end, names[rank]) for start, end, rank in found]

    def _evidence(self, found: Sequence[Finding], source_ref: str) -> tuple[RedactionEvidence, ...]:
        names, counts = self._scanner.names, Counter[str]()
        for rank, count in Counter(map(itemgetter(2), found)).items():
            counts[names[rank]] += count
        return tuple(
            RedactionEvidence(pattern_id=name, source_ref=source_ref, match_count=counts[name])
            for name in sorted(counts)
        )

    def _search(self, text: str) -> tuple[list[Finding], str]:
        """Find all there is, and look again: what stands beside a secret may only then be one."""
        found = self._pass(text)
        clean = replaced(text, found)
        for _ in range(MOST_PASSES):
            more = self._pass(clean, found) if found else []
            if not more:
                break
            found = united(found, more)
            clean = replaced(text, found)
        return found, clean

    def spotless(self, texts: Sequence[str]) -> list[bool]:
        """Tell of each text whether it has nothing that any rule could begin with.

        One pass over many small texts instead of one each. A text that is not spotless may
        still be clean: only `redact` can tell.
        """
        from creonowd.redaction.normalise import normalise, way_back
        from creonowd.redaction.scanner import suspicions

        starts = [0, *accumulate(len(text) + 1 for text in texts)]
        folded = normalise("\n".join(texts))
        spotless = [True] * len(texts)
        origin = way_back(folded)
        for start, end in suspicions(self._scanner, folded.text):
            first = bisect_right(starts, origin(start)) - 1
            last = bisect_right(starts, max(origin(end) - 1, 0)) - 1
            spotless[first : last + 1] = [False] * len(spotless[first : last + 1])
        return spotless

    @cached_property
    def _scanner(self) -> "Scanner":
        from creonowd.redaction.rulebook import rules_for
        from creonowd.redaction.scanner import make_scanner

        return make_scanner(rules_for(self._home, self._secrets, sensitive=self._sensitive))

    def _pass(self, text: str, gone: Sequence[Finding] = ()) -> list[Finding]:
        """Go over the text once; only near to what is `gone` from it, if that is little."""
        from creonowd.redaction.normalise import normalise, way_back
        from creonowd.redaction.scanner import NEAR, scan

        folded = normalise(text)
        near = gone and not folded.disguise and len(gone) * NEAR < len(text)
        found = scan(self._scanner, folded.text, placeholders(gone) if near else None)
        if not found or not folded.disguise:
            return found
        origin = way_back(folded)
        return [(origin(start), origin(end), rank) for start, end, rank in found]


@contextmanager
def _undisturbed() -> Generator[None]:
    """Keep the collector from walking over thousands of findings; there is no cycle in them."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


_everyone = Redactor()


def redact(text: str, source_ref: str = "") -> Redacted:
    """Replace what is a secret for everyone, knowing neither a home folder nor configured keys."""
    return _everyone.redact(text, source_ref)
