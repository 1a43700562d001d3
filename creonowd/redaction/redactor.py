"""Text in, redacted text and evidence out.

Knows what was asked for and what is told about it; what to look for stands in the rules.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from creonowd.model import Model

if TYPE_CHECKING:
    from creonowd.redaction.scanning import Scanner

PLACEHOLDER = "***REDACTED***"
MOST_PASSES = 4


class RedactionEvidence(Model):
    """How often one pattern was replaced in one source; never what it replaced."""

    pattern_id: str
    source_ref: str
    match_count: int


class Redacted(NamedTuple):
    """A text without its secrets, and what was taken out of it, sorted by pattern."""

    text: str
    evidence: tuple[RedactionEvidence, ...]


class Stretch(NamedTuple):
    """Where in a text a secret stands, and which pattern found it."""

    start: int
    end: int
    pattern_id: str


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
        counts: Counter[str] = Counter()
        for _ in range(MOST_PASSES):
            found = self._pass(text)
            if not found:
                break
            counts.update(stretch.pattern_id for stretch in found)
            text = _replaced(text, found)
        return Redacted(
            text,
            tuple(
                RedactionEvidence(pattern_id=name, source_ref=source_ref, match_count=counts[name])
                for name in sorted(counts)
            ),
        )

    def find(self, text: str) -> list[Stretch]:
        """List what `redact` would replace, in order, none overlapping another."""
        found: list[Stretch] = []
        for _ in range(MOST_PASSES):
            more = self._pass(_replaced(text, found))
            if not more:
                break
            found = _united(found, more)
        return found

    @cached_property
    def _scanner(self) -> "Scanner":
        from creonowd.redaction.rulebook import rules_for
        from creonowd.redaction.scanning import make_scanner

        return make_scanner(rules_for(self._home, self._secrets, sensitive=self._sensitive))

    def _pass(self, text: str) -> list[Stretch]:
        """Go over the text once: what stands beside a secret may only now be at a boundary."""
        from creonowd.redaction.folding import fold
        from creonowd.redaction.scanning import scan

        folded = fold(text)
        rules = self._scanner.rules
        return [
            Stretch(folded.origin(start), folded.origin(end), rules[rank].pattern_id)
            for start, end, rank in scan(self._scanner, folded.text)
        ]


def _replaced(text: str, stretches: Sequence[Stretch]) -> str:
    pieces: list[str] = []
    done = 0
    for stretch in stretches:
        pieces += (text[done : stretch.start], PLACEHOLDER)
        done = stretch.end
    return "".join([*pieces, text[done:]])


def _united(found: Sequence[Stretch], more: Sequence[Stretch]) -> list[Stretch]:
    """Add stretches that were found in a text where `found` is replaced, at their original places."""
    placed = [
        Stretch(_origin(found, start, end=False), _origin(found, end, end=True), name)
        for start, end, name in more
    ]
    united: list[Stretch] = []
    for stretch in sorted([*found, *placed]):
        if united and stretch.start < united[-1].end:
            last = united[-1]
            united[-1] = last._replace(end=max(last.end, stretch.end))
        else:
            united.append(stretch)
    return united


def _origin(found: Sequence[Stretch], place: int, *, end: bool) -> int:
    moved = 0
    for stretch in found:
        start = stretch.start - moved
        if place < start or (end and place == start):
            break
        if place < start + len(PLACEHOLDER) or (end and place == start + len(PLACEHOLDER)):
            return stretch.end if end else stretch.start
        moved += stretch.end - stretch.start - len(PLACEHOLDER)
    return place + moved


_everyone = Redactor()


def redact(text: str, source_ref: str = "") -> Redacted:
    """Replace what is a secret for everyone, knowing neither a home folder nor configured keys."""
    return _everyone.redact(text, source_ref)
