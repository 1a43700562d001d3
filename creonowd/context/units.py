"""A fragment made ready: redacted, cut to size, set as it will stand in the prompt, counted.

Knows no budget: what a unit costs is here, whether it may stay is decided elsewhere.
"""

from collections.abc import Iterable

from creonowd.context.fragment import Fragment, Kind, Layer
from creonowd.context.instruments import Instruments
from creonowd.context.template import constraint_tail, heading, one_line
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.tokens.boundaries import grapheme_floor, paragraphs, sentences


class Unit(Model):
    """One fragment as it will be sent, if it is.

    `before_*` measure it before it was cut to the size limit. `rendered` is empty if it is
    dropped for its size; that of a constraint lacks its number.
    """

    fragment: Fragment
    ref: str
    text: str
    rendered: str
    tokens: int
    before_chars: int
    before_tokens: int
    evidence: tuple[RedactionEvidence, ...] = ()

    @property
    def weight(self) -> int:
        """Say about how many characters remembering this takes."""
        return 500 + len(self.text) + len(self.rendered)

    @property
    def oversized(self) -> bool:
        """Whether the size limit took something away."""
        return len(self.text) < self.before_chars


def prepare(fragment: Fragment, instruments: Instruments) -> Unit:
    """Make one fragment ready, or recall it from when it was last."""
    return instruments.memory.prepared.get(
        (instruments.key, fragment), lambda: _prepare(fragment, instruments)
    )


def prepare_all(fragments: Iterable[Fragment], instruments: Instruments) -> list[Unit]:
    """Make many fragments ready; blank ones are no candidates."""
    given = [fragment for fragment in fragments if fragment.text.strip()]
    instruments.clean_many(fragment.text for fragment in given)
    instruments.clean_many(one_line(part) for f in given for part in f.source_ref.split("#", 1))
    return [prepare(fragment, instruments) for fragment in given]


def visible_ref(source_ref: str, instruments: Instruments) -> str:
    """Spell a reference so that it can be shown: on one line and without secrets."""
    return "#".join(instruments.clean(one_line(part)).text for part in source_ref.split("#", 1))


def head_within(text: str, limit: int) -> int:
    """Tell where to cut a text to at most `limit` code points.

    At the last paragraph if that keeps half of them, else at the last sentence that does, else
    at a grapheme.
    """
    if len(text) <= limit:
        return len(text)
    for boundaries in (paragraphs, sentences):
        if found := list(boundaries(text, limit // 2, limit)):
            return found[-1]
    return grapheme_floor(text, limit)


def with_lines(ref: str, text: str) -> str:
    """Say in a reference which lines the head of a text covers."""
    return ref if "#" in ref else f"{ref}#L1-L{text.count(chr(10), 0, -1) + 1}"


def _prepare(fragment: Fragment, instruments: Instruments) -> Unit:
    ref = visible_ref(fragment.source_ref, instruments)
    clean = instruments.clean(fragment.text)
    full = _rendered(fragment, ref, clean.text)
    text = _sized(fragment, clean.text, instruments.size_limit)
    rendered = full if text is clean.text else _rendered(fragment, with_lines(ref, text), text)
    before = instruments.count(full)
    return Unit(
        fragment=fragment,
        ref=ref,
        text=text,
        rendered=rendered,
        tokens=before if rendered is full else instruments.count(rendered),
        before_chars=len(clean.text),
        before_tokens=before,
        evidence=clean.evidence(ref),
    )


def _sized(fragment: Fragment, text: str, limit: int) -> str:
    sized = fragment.layer is Layer.SETTINGS or fragment.kind is Kind.ENTITY or fragment.hosted
    if not sized or len(text) <= limit:
        return text
    return "" if fragment.whole else text[: head_within(text, limit)]


def _rendered(fragment: Fragment, ref: str, text: str) -> str:
    if fragment.kind is Kind.CONSTRAINT:
        return constraint_tail(text)
    return f"{heading(ref)}{text}\n" if text else ""
