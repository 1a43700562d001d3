"""Labelled texts for redaction, and the score of a redactor on them."""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from creonowd.model import Model
from creonowd.redaction import redact

SHARED = Path(__file__).resolve().parents[2] / "shared" / "redaction" / "examples.jsonl"


class Example(Model, rename=None):
    """A labelled text: what must be redacted, and what must not be changed."""

    id: str
    tier: str
    text: str
    must_redact: tuple[str, ...] = ()
    must_keep: tuple[str, ...] = ()


class Score(Model):
    """How the examples of one tier came out."""

    secrets: int = 0
    survived: tuple[str, ...] = ()
    kept: int = 0
    harmed: tuple[str, ...] = ()
    clean: int = 0
    changed: tuple[str, ...] = ()

    @property
    def recall(self) -> float:
        """The share of the secrets that were redacted."""
        return 1 - len(self.survived) / max(1, self.secrets)

    @property
    def harm(self) -> float:
        """The share of the passages to keep that were changed."""
        return len(self.harmed) / max(1, self.kept)

    @property
    def loss(self) -> float:
        """The share of the texts without a secret that were changed at all."""
        return len(self.changed) / max(1, self.clean)


def read_examples(path: Path) -> list[Example]:
    """Read one example per line."""
    decode = msgspec.json.Decoder(Example).decode
    return [decode(line) for line in path.read_bytes().splitlines() if line.strip()]


def score(
    examples: Iterable[Example], redactor: Callable[[str], str] = lambda text: redact(text).text
) -> dict[str, Score]:
    """Redact every example and add up the mistakes by tier."""
    scores: dict[str, Score] = {}
    for example in examples:
        before = scores.get(example.tier, Score())
        scores[example.tier] = _add(before, example, redactor(example.text))
    return dict(sorted(scores.items()))


def _add(before: Score, example: Example, output: str) -> Score:
    survived = [example.id for secret in example.must_redact if secret in output]
    harmed = [example.id for kept in example.must_keep if kept not in output]
    clean = not example.must_redact
    return Score(
        secrets=before.secrets + len(example.must_redact),
        survived=(*before.survived, *survived),
        kept=before.kept + len(example.must_keep),
        harmed=(*before.harmed, *harmed),
        clean=before.clean + (1 if clean else 0),
        changed=(*before.changed, *([example.id] if clean and output != example.text else [])),
    )
