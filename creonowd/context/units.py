"""Units: fragments redacted, cut to the size limit, rendered and counted; and the input guard."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, NoReturn

from msgspec.structs import replace

from creonowd.context.fragment import Fragment, FragmentKind, Layer
from creonowd.context.language import CONSTRAINTS_FILE, constraint_tail, heading, one_line
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

# To decide on a unit takes as long as to redact and count so many characters.
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
    def oversized(self) -> bool:
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
    line = one_line(source_ref)
    return _redact_ref(line, tools) if tools.redact(line).findings else line


def visible_refs(source_refs: Sequence[str], tools: TextTools) -> list[str]:
    """Spell many new references as they may be shown."""
    lines = [one_line(ref) for ref in source_refs]
    unsafe = list(dict.fromkeys(line for line in lines if not _CONSTRAINT_REF.fullmatch(line)))
    redacted = zip(unsafe, tools.redact_all(unsafe), strict=True)
    secret = {line for line, clean in redacted if clean.findings}
    return [_redact_ref(line, tools) if line in secret else line for line in lines]


def _redact_ref(ref: str, tools: TextTools) -> str:
    """Redact file and fragment apart first: if only the file has a secret, the rest stays."""
    halves = "#".join(tools.redact(half).text for half in ref.split("#", 1))
    return tools.redact(halves).text


def guard_lengths(guarded: Sequence[Fragment], tools: TextTools) -> None:
    """Refuse input whose length alone, or one text of which alone, is over the limit.

    So no very long text is ever redacted or counted to find that it is too long.
    """
    tokenizer = tools.tokenizer
    guard_characters(guarded, MAX_INPUT_TOKENS, tools)
    if max((len(fragment.text) for fragment in guarded), default=0) > MAX_INPUT_TOKENS:
        long = (fragment.text for fragment in guarded if len(fragment.text) > MAX_INPUT_TOKENS)
        if any(exceeds(text, MAX_INPUT_TOKENS, tokenizer) for text in long):
            refuse_input(guarded, tools)


def guard_characters(guarded: Sequence[Fragment], limit: int, tools: TextTools) -> None:
    """Refuse input whose length alone is over a limit of tokens; takes no time at all."""
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
