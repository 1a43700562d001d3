"""A fragment made ready: redacted, cut to size, set as it will stand in the prompt, counted.

Knows no budget: what a unit costs is here, whether it may stay is decided elsewhere.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NoReturn

from msgspec.structs import replace

from creonowd.context.fragment import Fragment, FragmentKind, Layer
from creonowd.context.template import CONSTRAINTS_FILE, constraint_tail, heading, one_line
from creonowd.context.text_tools import RedactedText, TextTools
from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.tokens.boundaries import grapheme_floor, paragraphs, sentences
from creonowd.tokens.truncate import exceeds

# Ids that we mint ourselves hold no secret.
_MINTED = re.compile(rf"{re.escape(CONSTRAINTS_FILE)}#con_[a-z0-9]{{16,26}}")


class Unit(Model, gc=False):
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
        return self.fragment.weight + len(self.rendered)

    @property
    def oversized(self) -> bool:
        """Whether the size limit took something away."""
        return len(self.text) < self.before_chars


class UncountedUnit(NamedTuple):
    """A fragment as it will be sent but for its count; `full` is how it was before it was cut."""

    fragment: Fragment
    ref: str
    clean: RedactedText
    text: str
    full: str
    rendered: str


class Begun(NamedTuple):
    """Units that are known already, with gaps where drafts wait to be counted; `keys` are theirs."""

    known: list[Unit | None]
    drafts: list[UncountedUnit]
    keys: list[object]

    @property
    def texts(self) -> list[str]:
        """What is to be counted."""
        return [draft.full for draft in self.drafts]


def prepare(fragment: Fragment, instruments: TextTools) -> Unit:
    """Make one fragment ready, or recall it from when it was last."""
    return prepare_all([fragment], instruments)[0]


def prepare_all(fragments: Sequence[Fragment], instruments: TextTools) -> list[Unit]:
    """Make many fragments ready, or recall them from when they were last."""
    begun = begin(fragments, instruments)
    with instruments.begin_count(begun.texts) as counts:
        return finish(begun, counts(), instruments)


def begin(fragments: Sequence[Fragment], instruments: TextTools) -> Begun:
    """Recall what was made ready before, and draft the rest."""
    keys = [_key(fragment, instruments.key) for fragment in fragments]
    known = [_recalled(*pair, instruments) for pair in zip(fragments, keys, strict=True)]
    gaps = [index for index, unit in enumerate(known) if unit is None]
    drafts = _drafts([fragments[gap] for gap in gaps], instruments) if gaps else []
    return Begun(known, drafts, [keys[gap] for gap in gaps])


def finish(begun: Begun, counts: Sequence[int], instruments: TextTools) -> list[Unit]:
    """Make units of the drafts and their counts."""
    pairs = zip(begun.drafts, counts, strict=True)
    made = [_unit(draft, count, instruments) for draft, count in pairs]
    for key, unit in zip(begun.keys, made, strict=True):
        instruments.memory.prepared.put(key, unit)
    rest = iter(made)
    return [unit or next(rest) for unit in begun.known]


def candidates(fragments: Iterable[Fragment]) -> list[Fragment]:
    """Leave out what is blank: it is no candidate."""
    return [fragment for fragment in fragments if fragment.text.strip()]


def visible_ref(source_ref: str, instruments: TextTools) -> str:
    """Spell a reference so that it can be shown: on one line and without secrets."""
    line = one_line(source_ref)
    return _without_secrets(line, instruments) if instruments.clean(line).findings else line


def visible_refs(source_refs: Sequence[str], instruments: TextTools) -> list[str]:
    """Spell many new references so that they can be shown."""
    lines = [one_line(ref) for ref in source_refs]
    strange = list(dict.fromkeys(line for line in lines if not _MINTED.fullmatch(line)))
    cleaned = zip(strange, instruments.clean_all(strange), strict=True)
    found = {line for line, clean in cleaned if clean.findings}
    return [_without_secrets(line, instruments) if line in found else line for line in lines]


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


def _without_secrets(ref: str, instruments: TextTools) -> str:
    """Keep what can be told of a reference: if only its file has a secret, the part of it."""
    halves = "#".join(instruments.clean(half).text for half in ref.split("#", 1))
    return instruments.clean(halves).text


def _key(fragment: Fragment, measured: object) -> object:
    """Tell what a unit depends on: not on what ranks it, which changes with every question."""
    sized = _is_sized(fragment)
    return (
        measured,
        fragment.kind is FragmentKind.CONSTRAINT,
        sized and fragment.whole,
        sized,
        fragment.source_ref,
        fragment.text,
    )


def _recalled(fragment: Fragment, key: object, instruments: TextTools) -> Unit | None:
    unit: Unit | None = instruments.memory.prepared.recall(key)
    if unit is None or unit.fragment is fragment or unit.fragment == fragment:
        return unit
    return replace(unit, fragment=fragment)


def _unit(draft: UncountedUnit, before: int, instruments: TextTools) -> Unit:
    fragment, ref, clean, text, full, rendered = draft
    return Unit(
        fragment=fragment,
        ref=ref,
        text=text,
        rendered=rendered,
        tokens=before if rendered is full else instruments.count(rendered),
        before_chars=len(clean.text),
        before_tokens=before,
        evidence=clean.evidence(ref) if clean.findings else (),
    )


def _drafts(fragments: Sequence[Fragment], instruments: TextTools) -> list[UncountedUnit]:
    cleaned = instruments.clean_all([fragment.text for fragment in fragments])
    refs = visible_refs([fragment.source_ref for fragment in fragments], instruments)
    given = zip(fragments, refs, cleaned, strict=True)
    return [_draft(*each, instruments.size_limit) for each in given]


def _draft(fragment: Fragment, ref: str, clean: RedactedText, limit: int) -> UncountedUnit:
    full = _rendered(fragment, ref, clean.text)
    text = _sized(fragment, clean.text, limit)
    rendered = full if text is clean.text else _rendered(fragment, with_lines(ref, text), text)
    return UncountedUnit(fragment, ref, clean, text, full, rendered)


def _sized(fragment: Fragment, text: str, limit: int) -> str:
    if len(text) <= limit or not _is_sized(fragment):
        return text
    return "" if fragment.whole else text[: head_within(text, limit)]


def _is_sized(fragment: Fragment) -> bool:
    return (
        fragment.layer is Layer.SETTINGS or fragment.kind is FragmentKind.ENTITY or fragment.hosted
    )


def _rendered(fragment: Fragment, ref: str, text: str) -> str:
    if not text:
        return ""
    return (
        constraint_tail(text)
        if fragment.kind is FragmentKind.CONSTRAINT
        else f"{heading(ref)}{text}\n"
    )


MAX_INPUT_TOKENS = 64_000
NAMED = 3


def refuse_long(guarded: Sequence[Fragment], instruments: TextTools) -> None:
    """Refuse input that is over the limit, by its length or by one text alone."""
    tokenizer = instruments.tokenizer
    lengths = [len(fragment.text) for fragment in guarded]
    if sum(lengths) > MAX_INPUT_TOKENS * tokenizer.longest:
        _refuse(guarded, instruments)
    if max(lengths, default=0) > MAX_INPUT_TOKENS:
        long = (fragment.text for fragment in guarded if len(fragment.text) > MAX_INPUT_TOKENS)
        if any(exceeds(text, MAX_INPUT_TOKENS, tokenizer) for text in long):
            _refuse(guarded, instruments)


class Tally:
    """The tokens given so far; refuses as soon as they are too many."""

    def __init__(self, guarded: Callable[[], Sequence[Fragment]], instruments: TextTools) -> None:
        self._guarded = guarded
        self._instruments = instruments
        self._tokens = 0

    def add(self, tokens: int) -> None:
        """Count some more towards the limit."""
        self._tokens += tokens
        if self._tokens > MAX_INPUT_TOKENS:
            _refuse(self._guarded(), self._instruments)


def _refuse(guarded: Sequence[Fragment], instruments: TextTools) -> NoReturn:
    heaviest = sorted(guarded, key=lambda f: (-len(f.text), f.source_ref))[:NAMED]
    named = [visible_ref(fragment.source_ref, instruments) for fragment in heaviest]
    raise DaemonError(
        ErrorCode.CONTEXT_INPUT_TOO_LARGE,
        f"The input has more than {MAX_INPUT_TOKENS} tokens; narrow the retrieval or shorten "
        f"what is heaviest: {', '.join(named)}.",
        limitTokens=MAX_INPUT_TOKENS,
        heaviest=[
            {"source": fragment.source, "sourceRef": ref, "characters": len(fragment.text)}
            for ref, fragment in zip(named, heaviest, strict=True)
        ],
    )
