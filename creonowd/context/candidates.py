"""Candidates: fragments made ready, the decision on each, and the layer that these add up to.

A `Unit` is a fragment redacted, cut to the size limit, rendered and counted; what is too much for a
prompt at all is refused here. A `Decision` says what became of it, with its evidence.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain
from typing import NamedTuple, NoReturn

import msgspec
from msgspec.structs import replace

from creonowd.context.fragment import (
    TIMING,
    Action,
    Fragment,
    FragmentKind,
    Layer,
    Omission,
    Reason,
    Rule,
)
from creonowd.context.language import (
    CONSTRAINTS_FILE,
    PromptFrame,
    constraint_tail,
    heading,
    printable_ref,
    title,
)
from creonowd.context.text_tools import RedactedText, TextTools
from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.redaction import RedactionEvidence
from creonowd.text import join_lines
from creonowd.tokens.boundaries import grapheme_floor, paragraphs, sentences
from creonowd.tokens.truncate import exceeds

MAX_INPUT_TOKENS = 64_000
# Prose has about five characters per token at most, in any language. What has more than eight for
# each that is allowed is refused by its length: to count half a million letters takes a second.
CHARACTERS_PER_TOKEN = 8
MOST_NAMED = 3

# To decide on a unit takes as long as to redact and count this many characters.
UNIT_WORK = 40

# Ids that the daemon makes itself hold no secret.
_CONSTRAINT_REF = re.compile(rf"{re.escape(CONSTRAINTS_FILE)}#con_[a-z0-9]{{16,26}}")


class Unit(Model, gc=False):
    """A fragment as it stands in the prompt, if it is kept.

    `before_*` measure it before it was cut to the size limit. `rendered` is empty if the size
    limit dropped it; that of a constraint lacks its number.
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
        """About how many characters it takes to keep it."""
        return self.fragment.weight + len(self.rendered)

    @property
    def is_cut_to_size(self) -> bool:
        """Whether the size limit took something away."""
        return len(self.text) < self.before_chars


class UncountedUnit(NamedTuple):
    """A unit before counting; `full` is how it would be rendered without the size limit."""

    fragment: Fragment
    ref: str
    redacted: RedactedText
    text: str
    full: str
    rendered: str


class RedactedFragments(NamedTuple):
    """Fragments after redaction, in order: units kept from before, None where one is uncounted.

    `keys` are those under which the uncounted ones will be kept.
    """

    units: list[Unit | None]
    uncounted: list[UncountedUnit]
    keys: list[object]

    @property
    def texts(self) -> list[str]:
        """The texts to count."""
        return [unit.full for unit in self.uncounted]


def redact_fragments(fragments: Iterable[Fragment], tools: TextTools) -> RedactedFragments:
    """Redact fragments that are not kept as units from before; leave out blank ones."""
    candidates = [fragment for fragment in fragments if fragment.text.strip()]
    keys = [_key(fragment, tools.key) for fragment in candidates]
    units = [_recall(*pair, tools) for pair in zip(candidates, keys, strict=True)]
    new = [index for index, unit in enumerate(units) if unit is None]
    uncounted = _redact([candidates[index] for index in new], tools) if new else []
    return RedactedFragments(units, uncounted, [keys[index] for index in new])


def count_fragments(redacted: RedactedFragments, tools: TextTools) -> list[Unit]:
    """Count redacted fragments."""
    with tools.start_counting(redacted.texts) as pending:
        return make_units(redacted, pending.result(), tools)


def make_units(redacted: RedactedFragments, counts: Sequence[int], tools: TextTools) -> list[Unit]:
    """Make units of redacted fragments and the counts of their texts, and keep them."""
    pairs = zip(redacted.uncounted, counts, strict=True)
    new = [_make_unit(uncounted, count, tools) for uncounted, count in pairs]
    for key, unit in zip(redacted.keys, new, strict=True):
        tools.memory.units.put(key, unit)
    rest = iter(new)
    return [unit or next(rest) for unit in redacted.units]


def _key(fragment: Fragment, tools_key: object) -> object:
    """Return what a unit depends on; not its score and rank, which change with every query."""
    limited = _has_size_limit(fragment)
    return (
        tools_key,
        fragment.kind is FragmentKind.CONSTRAINT,
        limited and fragment.whole,
        limited,
        fragment.source_ref,
        fragment.title,
        fragment.first_line,
        fragment.text,
    )


def _recall(fragment: Fragment, key: object, tools: TextTools) -> Unit | None:
    unit: Unit | None = tools.memory.units.peek(key)
    if unit is None or unit.fragment is fragment or unit.fragment == fragment:
        return unit
    return replace(unit, fragment=fragment)


def _redact(fragments: Sequence[Fragment], tools: TextTools) -> list[UncountedUnit]:
    texts = tools.redact_all([fragment.text for fragment in fragments])
    refs = visible_refs([fragment.source_ref for fragment in fragments], tools)
    rows = zip(fragments, refs, texts, strict=True)
    return [
        _uncounted_unit(
            fragment,
            ref,
            _on_one_line(text, tools) if fragment.kind is FragmentKind.CONSTRAINT else text,
            tools,
        )
        for fragment, ref, text in rows
    ]


def _on_one_line(redacted: RedactedText, tools: TextTools) -> RedactedText:
    """Join the lines of a redacted text, and redact again what only then looks like a secret.

    A line break in a constraint could pass for the beginning of another part of the prompt.
    """
    line = join_lines(redacted.text)
    if line == redacted.text:
        return redacted
    joined = tools.redact(line)
    findings = Counter(dict(redacted.findings)) + Counter(dict(joined.findings))
    return RedactedText(joined.text, findings=tuple(sorted(findings.items())))


def _uncounted_unit(
    fragment: Fragment, ref: str, redacted: RedactedText, tools: TextTools
) -> UncountedUnit:
    full = _render(fragment, ref, redacted.text, tools)
    text, limit = redacted.text, tools.size_limit
    if len(text) > limit and _has_size_limit(fragment):
        text = "" if fragment.whole else text[: head_within(text, limit)]
    if text is redacted.text:
        return UncountedUnit(fragment, ref, redacted, text, full, full)
    rendered = render_head(fragment, ref, text, tools)
    return UncountedUnit(fragment, ref, redacted, text, full, rendered)


def _has_size_limit(fragment: Fragment) -> bool:
    return (
        fragment.layer is Layer.SETTINGS or fragment.kind is FragmentKind.ENTITY or fragment.hosted
    )


def render_head(fragment: Fragment, ref: str, text: str, tools: TextTools) -> str:
    """Render the head of a fragment's text, with the lines of its file that it covers."""
    return _render(fragment, _with_lines(ref, text, fragment.first_line), text, tools)


def _render(fragment: Fragment, ref: str, text: str, tools: TextTools) -> str:
    if not text:
        return ""
    if fragment.kind is FragmentKind.CONSTRAINT:
        return constraint_tail(text)
    title = f"# {visible_ref(fragment.title, tools)}\n" if fragment.title else ""
    return f"{heading(ref)}{title}{text}\n"


def _make_unit(uncounted: UncountedUnit, before_tokens: int, tools: TextTools) -> Unit:
    fragment, ref, redacted, text, full, rendered = uncounted
    return Unit(
        fragment=fragment,
        ref=ref,
        text=text,
        rendered=rendered,
        tokens=before_tokens if rendered is full else tools.count(rendered),
        before_chars=len(redacted.text),
        before_tokens=before_tokens,
        evidence=redacted.evidence(ref) if redacted.findings else (),
    )


def hosted_tokens(units: Iterable[Unit]) -> int:
    """Add up the tokens of what hosts sent, before anything was cut."""
    return sum([unit.before_tokens for unit in units if unit.fragment.hosted])


def head_within(text: str, limit: int, least: int | None = None) -> int:
    """Return where to cut a text to at most `limit` code points.

    At the last paragraph that keeps more than `least` of them, by default half, else at the last
    sentence that does, else at a grapheme.
    """
    if len(text) <= limit:
        return len(text)
    for boundaries in (paragraphs, sentences):
        if found := list(boundaries(text, limit // 2 if least is None else least, limit)):
            return found[-1]
    return grapheme_floor(text, limit)


def _with_lines(ref: str, text: str, first: int) -> str:
    """Add to a reference which lines of its file a text covers."""
    return ref if "#" in ref else f"{ref}#L{first}-L{first + text.count(chr(10), 0, -1)}"


def visible_ref(source_ref: str, tools: TextTools) -> str:
    """Spell a reference as it may be shown: on one line and without secrets."""
    line = printable_ref(source_ref)
    return _redact_ref(line, tools) if tools.redact(line).findings else line


def visible_refs(source_refs: Sequence[str], tools: TextTools) -> list[str]:
    """Spell many new references as they may be shown."""
    lines = [printable_ref(ref) for ref in source_refs]
    unsafe = list(dict.fromkeys(line for line in lines if not _CONSTRAINT_REF.fullmatch(line)))
    redacted = zip(unsafe, tools.redact_all(unsafe), strict=True)
    secret = {line for line, clean in redacted if clean.findings}
    return [_redact_ref(line, tools) if line in secret else line for line in lines]


def _redact_ref(ref: str, tools: TextTools) -> str:
    """Redact file and fragment apart first: if only the file has a secret, the rest stays."""
    halves = "#".join(tools.redact(half).text for half in ref.split("#", 1))
    return tools.redact(halves).text


def guard_lengths(guarded: Sequence[Fragment], tools: TextTools) -> None:
    """Refuse input if all of it, or a single text, is certainly over the token limit.

    Lengths are checked first, so that a very long text is never redacted or counted only to be
    refused.
    """
    tokenizer = tools.tokenizer
    guard_characters(guarded, MAX_INPUT_TOKENS, tools)
    if max((len(fragment.text) for fragment in guarded), default=0) > MAX_INPUT_TOKENS:
        long = (fragment.text for fragment in guarded if len(fragment.text) > MAX_INPUT_TOKENS)
        if any(exceeds(text, MAX_INPUT_TOKENS, tokenizer) for text in long):
            refuse_input(guarded, tools)


def guard_characters(guarded: Sequence[Fragment], limit: int, tools: TextTools) -> None:
    """Refuse input with more characters than the limit of tokens could ever hold; counts no token."""
    most = limit * min(CHARACTERS_PER_TOKEN, tools.tokenizer.longest)
    if sum(len(fragment.text) for fragment in guarded) > most:
        refuse_input(guarded, tools, limit)


def refuse_input(
    guarded: Sequence[Fragment], tools: TextTools, limit: int = MAX_INPUT_TOKENS
) -> NoReturn:
    """Fail with CONTEXT_INPUT_TOO_LARGE, naming the longest texts."""
    longest = sorted(guarded, key=lambda f: (-len(f.text), f.source_ref))[:MOST_NAMED]
    refs = [visible_ref(fragment.source_ref, tools) for fragment in longest]
    characters, layers = Counter[str](), Counter[Layer]()
    for fragment in guarded:
        layers[fragment.layer] += len(fragment.text)
        pinned = not fragment.hosted and fragment.layer is Layer.IMMEDIATE
        characters[fragment.source if pinned else fragment.layer.value] += len(fragment.text)
    figures = ", ".join(f"{part} {length}" for part, length in characters.items())
    raise DaemonError(
        ErrorCode.CONTEXT_INPUT_TOO_LARGE,
        Wording(
            f"The input has more than {limit} tokens, or more than {CHARACTERS_PER_TOKEN} "
            f"characters for each of them (in characters: {figures}); narrow the retrieval or "
            f"shorten what is heaviest: {', '.join(refs)}.",
            f"输入超过 {limit} tokens，或每个 token 超过 {CHARACTERS_PER_TOKEN} 字"
            f"（字数：{figures}），请缩小检索范围，或缩短最长的部分：{'、'.join(refs)}。",
        ),
        limitTokens=limit,
        limitCharacters=limit * CHARACTERS_PER_TOKEN,
        layer=max(layers, key=lambda layer: layers[layer]),
        characters=dict(characters),
        heaviest=[
            {"source": fragment.source, "sourceRef": ref, "characters": len(fragment.text)}
            for ref, fragment in zip(refs, longest, strict=True)
        ],
    )


_NO_WANT_OF_ROOM = TIMING | {Rule.DUPLICATE, Rule.SKILL_WINDOW}


class TrimEvidence(Model, gc=False):
    """What became of one candidate.

    The document is one candidate. What lies so far from the cursor that it could never be shown is
    not read: its characters are those of the file and count, its tokens do not.
    """

    layer: Layer
    """The layer that it is a candidate for."""
    source_ref: str
    """What it is: a file, a passage of a document (`path#offset`), a constraint, a host's
    chunk."""
    action: Action
    """Whether it was kept, trimmed or dropped."""
    reason: Reason
    """Why; a kept one has `over_budget` too, the check that it passed."""
    rule: Rule
    """The step that decided."""
    before_chars: int
    """Its code points before, after redaction."""
    after_chars: int
    """Its code points in the prompt."""
    before_tokens: int
    """Its tokens before."""
    after_tokens: int
    """Its tokens in the prompt."""


class Decision(Model, gc=False):
    """What the prompt keeps of a candidate, the evidence for that, and what ranked it.

    `fits_with` is how many more tokens of room in its layer would have kept all of it; that of a
    chunk follows from the tokens `wanted` by it and all that ranks above it. `settled`
    is how much of `rendered`, in code points, stands before the author's cursor in the document.
    `is_allusion` is that of its fragment.
    """

    evidence: TrimEvidence
    text: str
    fragment: Fragment
    kind: FragmentKind = FragmentKind.TEXT
    rendered: str = ""
    score: float | None = None
    confidence: float | None = None
    priority: int | None = None
    fits_with: int | None = None
    wanted: int | None = None
    settled: int = 0
    is_allusion: bool = False
    redactions: tuple[RedactionEvidence, ...] = ()

    @property
    def tokens(self) -> int:
        """Its tokens in the prompt."""
        return self.evidence.after_tokens

    @property
    def is_kept(self) -> bool:
        """Whether any of it is in the prompt."""
        return self.evidence.action is not Action.DROPPED

    @property
    def is_short(self) -> bool:
        """Whether some of it is missing for want of room."""
        if self.evidence.action is Action.KEPT or self.evidence.rule in _NO_WANT_OF_ROOM:
            return False
        return self.evidence.reason in {Reason.OVER_BUDGET, Reason.TOO_LARGE}


class ListNumber(NamedTuple):
    """A constraint's number in the list, and its tokens.

    `before_tokens` are those of the number that it would have if no constraint were left out.
    """

    text: str = ""
    tokens: int = 0
    before_tokens: int = 0


NO_NUMBER = ListNumber()


def keep(unit: Unit, rule: Rule, number: ListNumber = NO_NUMBER) -> Decision:
    """Keep all of a unit; one that the size limit cut counts as trimmed."""
    if not unit.is_cut_to_size:
        return _decide(unit, Action.KEPT, Reason.OVER_BUDGET, rule, number=number)
    action = Action.TRIMMED if unit.rendered else Action.DROPPED
    return _decide(unit, action, Reason.TOO_LARGE, Rule.SIZE_LIMIT, number=number)


def drop(
    unit: Unit, rule: Rule, fits_with: int | None = None, number: ListNumber = NO_NUMBER
) -> Decision:
    """Leave a unit out."""
    if unit.is_cut_to_size and not unit.rendered:
        return _decide(unit, Action.DROPPED, Reason.TOO_LARGE, Rule.SIZE_LIMIT, number=number)
    return _decide(
        unit, Action.DROPPED, Reason.OVER_BUDGET, rule, fits_with=fits_with, number=number
    )


def keep_part(rest: Unit, rule: Rule, fits_with: int | None = None) -> Decision:
    """Keep the part of a unit that is left after cutting."""
    return _decide(rest, Action.TRIMMED, Reason.OVER_BUDGET, rule, fits_with=fits_with)


def _decide(
    unit: Unit,
    action: Action,
    reason: Reason,
    rule: Rule,
    *,
    fits_with: int | None = None,
    number: ListNumber = NO_NUMBER,
) -> Decision:
    dropped = action is Action.DROPPED
    fragment = unit.fragment
    return Decision(
        evidence=TrimEvidence(
            layer=fragment.layer,
            source_ref=unit.ref,
            action=action,
            reason=reason,
            rule=rule,
            before_chars=unit.before_chars,
            after_chars=0 if dropped else len(unit.text),
            before_tokens=unit.before_tokens + number.before_tokens,
            after_tokens=0 if dropped else unit.tokens + number.tokens,
        ),
        text=unit.text,
        fragment=fragment,
        kind=fragment.kind,
        rendered="" if dropped else number.text + unit.rendered,
        score=fragment.score,
        confidence=fragment.confidence,
        priority=fragment.priority,
        fits_with=None if fits_with is None else max(1, fits_with),
        is_allusion=fragment.is_allusion,
        redactions=unit.evidence,
    )


def drop_unread(left_out: Iterable[Omission], tools: TextTools) -> list[Decision]:
    """Record the candidates that could not be read, sorted by reference."""
    return [
        Decision(
            evidence=TrimEvidence(
                layer=item.layer,
                source_ref=visible_ref(item.source_ref, tools),
                action=Action.DROPPED,
                reason=item.reason,
                rule=Rule.UNREADABLE,
                before_chars=0,
                after_chars=0,
                before_tokens=0,
                after_tokens=0,
            ),
            text="",
            fragment=Fragment(
                layer=item.layer, source=item.source, source_ref=item.source_ref, text=""
            ),
        )
        for item in sorted(left_out, key=lambda item: item.source_ref)
    ]


def of_layer(layer: Layer, decisions: Iterable[Decision]) -> list[Decision]:
    """Return the decisions on one layer."""
    return [decision for decision in decisions if decision.evidence.layer is layer]


class LayerOutcome(Model):
    """The decisions on one layer in the order of the prompt, and their sums.

    `truncated` says that some of it is missing for want of room; `rules` are the steps that
    decided anything, `actions` how often each was taken.
    """

    decisions: tuple[Decision, ...]
    tokens: int
    before_tokens: int
    truncated: bool
    chunks: int
    sources: tuple[str, ...]
    evidence: tuple[TrimEvidence, ...]
    encoded: "EncodedEvidence"
    redactions: tuple[RedactionEvidence, ...]
    rules: frozenset[Rule]
    actions: dict[Action, int]

    def is_below(self, minimum: int) -> bool:
        """Return whether the layer lost text although it has fewer tokens than its minimum."""
        return self.truncated and self.tokens < minimum


def summarise_layer(decisions: Iterable[Decision]) -> LayerOutcome:
    """Add up the decisions on a layer."""
    every = tuple(decisions)
    evidence = tuple([decision.evidence for decision in every])
    kept = [piece for piece in evidence if piece.action is not Action.DROPPED]
    # Each source once, without the part of it that a chunk comes from.
    sources = dict.fromkeys([piece.source_ref.partition("#")[0] for piece in kept])
    return LayerOutcome(
        decisions=every,
        tokens=sum([piece.after_tokens for piece in kept]),
        before_tokens=sum([piece.before_tokens for piece in evidence]),
        truncated=any(decision.is_short for decision in every),
        chunks=len(kept),
        sources=tuple(sources),
        evidence=evidence,
        encoded=EncodedEvidence(evidence),
        actions=dict(Counter([piece.action for piece in evidence])),
        rules=frozenset([piece.rule for piece in evidence]),
        redactions=_redactions_of(every),
    )


def _redactions_of(decisions: Sequence[Decision]) -> tuple[RedactionEvidence, ...]:
    found = [decision.redactions for decision in decisions if decision.redactions]
    return add_up(chain.from_iterable(found)) if found else ()


def add_up(evidence: Iterable[RedactionEvidence]) -> tuple[RedactionEvidence, ...]:
    """Add up what the same pattern found in the same source, sorted by source and pattern."""
    sums = Counter[tuple[str, str]]()
    for found in evidence:
        sums[found.source_ref, found.pattern_id] += found.match_count
    return tuple(
        RedactionEvidence(pattern_id=pattern, source_ref=ref, match_count=count)
        for (ref, pattern), count in sorted(sums.items())
    )


class EncodedEvidence:
    """Evidence as it stands in a reply, which is encoded once for all assemblies that share it."""

    def __init__(self, evidence: Sequence[TrimEvidence]) -> None:
        self._evidence = evidence

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EncodedEvidence) and self.entries == other.entries

    def __hash__(self) -> int:
        return hash(self.entries)

    @cached_property
    def entries(self) -> bytes:
        """The entries of a list without its brackets."""
        return msgspec.json.encode(self._evidence)[1:-1]


class EncodedPart(NamedTuple):
    """A part of the prompt and the evidence on it as they stand in a reply.

    `text` is JSON without its quotes, `evidence` the entries of a list without its brackets.
    """

    text: bytes
    evidence: bytes

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it."""
        return (len(self.text) + len(self.evidence)) // 2


def encode_part(text: str, evidence: Sequence[TrimEvidence]) -> EncodedPart:
    """Encode a part of the prompt, so that it can be put together with others."""
    return EncodedPart(encode_text(text), EncodedEvidence(evidence).entries)


def encode_text(text: str) -> bytes:
    """Return a text as it stands between the quotes of JSON."""
    return msgspec.json.encode(text)[1:-1]


class Rendered(NamedTuple):
    """A part of the prompt: its text, its tokens, and how many of those are fixed words."""

    text: str
    tokens: int
    fixed: int


def render_text(words: str, tools: TextTools) -> Rendered:
    """Render fixed words."""
    tokens = tools.count(words)
    return Rendered(words, tokens, tokens)


class PromptPart(NamedTuple):
    """A part of the prompt as it is rendered: a candidate, or fixed words if there is none."""

    text: str
    decision: Decision | None = None


def layer_parts(
    layer: Layer, decisions: Sequence[Decision], frame: PromptFrame
) -> list[PromptPart]:
    """Return what a layer consists of: its title, and what is kept of it in reading order."""
    texts, constraints = _kept_decisions(decisions)
    parts = [PromptPart(title(layer, empty=not texts and not constraints))]
    parts += [PromptPart(decision.rendered, decision) for decision in texts]
    if constraints:
        parts.append(PromptPart(frame.constraints))
        parts += [PromptPart(decision.rendered, decision) for decision in constraints]
    return parts


def render_layer(layer: Layer, decisions: Sequence[Decision], tools: TextTools) -> Rendered:
    """Render a layer and add up its tokens."""
    parts = layer_parts(layer, decisions, tools.frame)
    fixed = sum([tools.count(part.text) for part in parts if part.decision is None])
    tokens = sum([part.decision.tokens for part in parts if part.decision is not None])
    return Rendered("".join([part.text for part in parts]), fixed + tokens, fixed)


def layer_content(layer: Layer, decisions: Sequence[Decision], frame: PromptFrame) -> str:
    """Return what stands below the title of a layer."""
    return "".join([part.text for part in layer_parts(layer, decisions, frame)[1:]])


def layer_tokens(layer: Layer, decisions: Sequence[Decision], tools: TextTools) -> int:
    """Count a layer as `render_layer` renders it."""
    kept = [decision for decision in decisions if decision.is_kept]
    tokens = tools.count(title(layer, empty=not kept))
    if any(decision.kind is FragmentKind.CONSTRAINT for decision in kept):
        tokens += tools.count(tools.frame.constraints)
    return tokens + sum([decision.tokens for decision in kept])


def join(parts: Iterable[Rendered]) -> Rendered:
    """Put one part after the other; their tokens add up."""
    listed = list(parts)
    return Rendered(
        "".join(part.text for part in listed),
        sum(part.tokens for part in listed),
        sum(part.fixed for part in listed),
    )


def _kept_decisions(decisions: Sequence[Decision]) -> tuple[list[Decision], list[Decision]]:
    """Return what is kept: what stands before the heading of the constraints, and the rest."""
    kept = [decision for decision in decisions if decision.is_kept]
    kinds = [decision.kind for decision in kept]
    if FragmentKind.CONSTRAINT not in kinds:
        return kept, []
    first = kinds.index(FragmentKind.CONSTRAINT)
    return kept[:first], kept[first:]
