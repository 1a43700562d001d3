"""Labelled texts for redaction, and the score of a redactor on them.

Rules are written with an eye on the forms and the harmless texts of `tests/redaction`; those of
the held-out files are only measured.
"""

import itertools
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from creonowd.model import Model
from creonowd.redaction import redact

SHARED = Path(__file__).resolve().parents[2] / "shared" / "redaction" / "examples.jsonl"
SETS = Path(__file__).resolve().parents[1] / "tests" / "redaction"

Redact = Callable[[str], str]


def _redact(text: str) -> str:
    return redact(text).text


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


def score(examples: Iterable[Example], redactor: Redact = _redact) -> dict[str, Score]:
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


MARKS = re.compile("⟦([^⟧]*)⟧")
CHOICE = re.compile("⟨([^⟩]*)⟩")
MOST_CHOICES = 24
"""How many texts one line with choices stands for, at most."""


class Form(Model):
    """A way in which a secret is written down: the text, what must go of it, and what must stay."""

    id: str
    text: str
    secrets: tuple[str, ...]
    kept: tuple[str, ...]


def read_forms(path: Path) -> list[Form]:
    """Read forms, split by `%%` and by `@@ kind`; what must go stands in ⟦ ⟧."""
    forms: list[Form] = []
    for block in re.split(r"^@@ ", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        kind, _, rest = block.partition("\n")
        for number, marked in enumerate(rest.removesuffix("\n").split("\n%%\n"), 1):
            forms.append(_form(f"{kind} {number}", marked))
    return forms


def _form(name: str, marked: str) -> Form:
    parts = MARKS.split(marked)
    return Form(
        id=name,
        text="".join(parts),
        secrets=tuple(secret for part in parts[1::2] for secret in _pieces(part)),
        kept=tuple(part for part in parts[::2] if part.strip()),
    )


def _pieces(secret: str) -> list[str]:
    """Return what must not be seen of a secret: each long word, or all of it if there is none."""
    return [piece for piece in secret.split() if len(piece) >= 4] or [secret]


def read_harmless(path: Path) -> list[str]:
    """Read texts without secrets, one per line; `⟨a|b⟩` is a choice, ⏎ a new line, ⇥ a tab."""
    lines = path.read_text(encoding="utf-8").replace("⇥", "\t").splitlines()
    return [
        text.replace("⏎", "\n")
        for line in lines
        if line and not line.startswith("@@ ")
        for text in _choices(line)
    ]


def _choices(line: str) -> list[str]:
    parts = [part.split("|") if at % 2 else [part] for at, part in enumerate(CHOICE.split(line))]
    texts = ["".join(choice) for choice in itertools.product(*parts)]
    step = -(-len(texts) // MOST_CHOICES)
    return texts[::step]


def leaks(forms: Iterable[Form], redactor: Redact = _redact) -> list[str]:
    """List the forms of which a secret, or a part of it, is still seen."""
    return [
        form.id for form in forms if any(secret in redactor(form.text) for secret in form.secrets)
    ]


def harms(forms: Iterable[Form], redactor: Redact = _redact) -> list[str]:
    """List the forms of which more than the secret is gone."""
    return [form.id for form in forms if not all(kept in redactor(form.text) for kept in form.kept)]
