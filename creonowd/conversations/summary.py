"""The form that a history summary fills: six lines, always the same, always in this order.

Knows the form; knows nothing of who fills it.
"""

import re

import msgspec
from msgspec.structs import replace

from creonowd.conversations.excerpts import clip
from creonowd.model import Model
from creonowd.redaction import Redactor
from creonowd.tokens.boundaries import sentences

HEADING = "[History Summary]"
NOTHING = "none"
LABELS = {
    "overall_goal": "Overall Goal",
    "plan_and_progress": "Current Plan & Progress",
    "files": "Environment / Files",
    "knowledge": "Key Knowledge / Insights",
    "recent_actions": "Recent Actions",
    "left_off": "Left-off Point",
}
LONGEST_FIELD = 4_000
LONGEST_SENTENCE = 160

_FIELD = re.compile(
    r"^[ \t]*[-*][ \t]*\**(?P<label>[A-Z][^:：\n]{2,40}?)\**[ \t]*[:：](?P<text>.*)$"
)


class Summary(Model):
    """What old rounds come to, field by field."""

    overall_goal: str = NOTHING
    plan_and_progress: str = NOTHING
    files: str = NOTHING
    knowledge: str = NOTHING
    recent_actions: str = NOTHING
    left_off: str = NOTHING


def rendered(summary: Summary) -> str:
    """Write the form out."""
    fields = msgspec.structs.asdict(summary)
    return "\n".join([HEADING, *(f"- {LABELS[name]}: {fields[name]}" for name in LABELS)])


def read_form(text: str) -> Summary | None:
    """Read a filled form, with or without words around it; None if a field is missing or empty."""
    names = {label.lower(): name for name, label in LABELS.items()}
    found: dict[str, str] = {}
    order: list[str] = []
    body = text[text.find(HEADING) :] if HEADING in text else text
    for line in body.splitlines():
        match = _FIELD.match(line)
        name = names.get(match["label"].strip().lower()) if match else None
        if match and name:
            order.append(name)
            found[name] = " ".join(match["text"].split())
        elif order and line.strip() and not line.strip().startswith("```"):
            found[order[-1]] = f"{found[order[-1]]} {' '.join(line.split())}".strip()
    fits = order == list(LABELS) and all(
        0 < len(found[name]) <= LONGEST_FIELD and "<" not in found[name][:1] for name in order
    )
    return Summary(**found) if fits else None


def to_one_sentence(summary: Summary) -> Summary:
    """Shorten every line to its first sentence."""
    fields = msgspec.structs.asdict(summary)
    return Summary(**{name: _first_sentence(fields[name]) for name in LABELS})


def without_secrets(summary: Summary, redactor: Redactor) -> Summary:
    """Take secrets out of every field."""
    fields = msgspec.structs.asdict(summary)
    return replace(summary, **{name: redactor.redact(text).text for name, text in fields.items()})


def _first_sentence(text: str) -> str:
    text = text.split("; ", maxsplit=1)[0]
    end = next(iter(sentences(text, 0, len(text))), len(text))
    sentence = text[:end].strip() or text
    if len(sentence) <= LONGEST_SENTENCE:
        return sentence
    head = sentence[:LONGEST_SENTENCE]
    return f"{head[: head.rfind(', ')]}, …" if ", " in head else clip(sentence, LONGEST_SENTENCE)
