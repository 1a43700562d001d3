"""One assembly, step by step.

plan ─► gather ─► redact ─► count ─► guard ─► trim ─► render ─► hash. Only gathering waits for
anything; the rest is a pure function of what was gathered and runs in a thread.

A prompt is cut into blocks between parts that change at different times: rules change in days,
settings in hours, the story so far with a chapter, passages every page or two, what single
sentences allude to and the window every few hundred characters, and what stands behind the window
with every call.
"""

import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

from anyio import CapacityLimiter, lowlevel, to_thread
from msgspec.structs import replace

from creonowd.context.budget import BudgetProfile, allowances_of
from creonowd.context.candidates import (
    MAX_INPUT_TOKENS,
    UNIT_WORK,
    Decision,
    LayerOutcome,
    RedactedFragments,
    Rendered,
    TrimEvidence,
    Unit,
    count_fragments,
    drop,
    drop_unread,
    encode_text,
    guard_characters,
    guard_lengths,
    hosted_tokens,
    join,
    of_layer,
    redact_fragments,
    refuse_input,
    render_layer,
    summarise_layer,
    visible_ref,
)
from creonowd.context.dynamic_layers import (
    PinnedTexts,
    PinnedUnits,
    RankedChunks,
    UserContent,
    UserContentInput,
    count_pinned,
    input_fragments,
    redact_pinned,
    trim_user_content,
)
from creonowd.context.fragment import (
    DYNAMIC,
    STABLE,
    Action,
    Caution,
    Extent,
    Fragment,
    FragmentKind,
    Layer,
    Rule,
    caution,
)
from creonowd.context.language import title
from creonowd.context.plan import Document, Plan, Summary, previous_start, shows_document
from creonowd.context.source import (
    Failure,
    GatheredFragments,
    Source,
    depends_on_place,
    fragments_at_place,
    gather,
    wanted_sources,
)
from creonowd.context.stable_prefix import (
    NOT_MENTIONED,
    PreparedRules,
    PreparedSettings,
    RedactedRules,
    RedactedSettings,
    SystemPrompt,
    SystemPromptInput,
    count_rules,
    count_settings,
    entity_mentions,
    redact_rules,
    redact_settings,
    system_prompt,
)
from creonowd.context.story import UntimelyFragment
from creonowd.context.text_tools import (
    CachingTokenizer,
    NotInMemoryError,
    TextTools,
    TokenizerFailedError,
)
from creonowd.context.window import Manuscript, Surroundings, surroundings_of
from creonowd.errors import WarningCode, Wording
from creonowd.model import Model
from creonowd.text import count_line_ends
from creonowd.tokens.boundaries import LINE_START
from creonowd.tokens.tokenizer import ByteTokenizer, PendingCounts

BATCH = 500

_SUMMARY_MISSING = {
    Summary.FULL_TEXT: Wording("the summary of the whole text is missing", "全文摘要未注入"),
    Summary.RELATIONS: Wording("the summary of the relations is missing", "人物关系摘要未注入"),
}

# New text of this length is redacted and counted on the event loop within milliseconds.
INLINE_CHARACTERS = 16_000

# A break point before the cursor: at the end of a paragraph, and this many bytes after the last one.
BLOCK_BYTES = 360
WINDOW_POINTS = 4

PartName = Literal["rules", "systemPrompt", "story", "passages", "allusions", "window"]

_PARAGRAPH_END = re.compile(rf"\n(?={LINE_START})")


class BreakPoint(NamedTuple):
    """Where a part of the prompt ends: its name, and the hash, bytes and tokens up to there."""

    after: PartName
    hash: str
    bytes: int
    tokens: int


class Assembly(Model):
    """The result of one assembly. `warnings` name the layer they belong to, if one."""

    plan: Plan
    system_prompt: SystemPrompt
    retrieved: "RetrievedText"
    user_content: Rendered
    prompt_hash: str
    break_points: tuple[BreakPoint, ...]
    layers: dict[Layer, LayerOutcome]
    warnings: tuple[Caution, ...]
    failures: tuple[Failure, ...]
    chunk_room: int
    tokenizer: CachingTokenizer

    @property
    def tokens(self) -> int:
        """The exact count of the prompt."""
        return self.system_prompt.prompt.tokens + self.user_content.tokens

    @property
    def fixed_tokens(self) -> int:
        """The tokens that belong to no layer."""
        return self.system_prompt.prompt.fixed + self.user_content.fixed

    def count(self, action: Action) -> int:
        """Count the candidates that an action was taken on."""
        return sum(outcome.actions.get(action, 0) for outcome in self.layers.values())

    def fits_with(self, decision: Decision) -> int | None:
        """Return how many more tokens of room in its layer would have kept all of a candidate."""
        if decision.wanted is None:
            return decision.fits_with
        return max(1, decision.wanted - self.chunk_room)

    def decisions(self) -> Iterator[Decision]:
        """Return the decisions on all candidates, layer by layer."""
        for layer in Layer:
            yield from self.layers[layer].decisions


class RetrievedText(NamedTuple):
    """Retrieved as it stands behind a system prompt, with the hash of all up to its end.

    `tokens` and `bytes` include the system prompt. It is kept under the ids of `evidence`, on what
    it was made of. `outcome` adds up the decisions and has none of them.
    """

    rendered: Rendered
    encoded: bytes
    break_points: tuple[BreakPoint, ...]
    hasher: Any
    bytes: int
    tokens: int
    evidence: tuple[TrimEvidence, ...]
    outcome: LayerOutcome

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it; its evidence is kept elsewhere, too."""
        return 1000 + len(self.rendered.text) + len(self.encoded) // 2


class HashedPrompt(NamedTuple):
    """The hash of the whole prompt, and where it can be cut."""

    hash: str
    break_points: tuple[BreakPoint, ...]


class Concurrency(NamedTuple):
    """How many assemblies read and compose in threads; more would only slow each other down."""

    reading: CapacityLimiter
    composing: CapacityLimiter


class RedactedChunks(NamedTuple):
    """Chunks before counting, in batches, and the key that they will be kept under."""

    key: object
    batches: list[RedactedFragments]


class RedactedSources(NamedTuple):
    """What sources returned, after redaction. Chunks and notes come in batches.

    What is kept from before is counted already. Other threads count the settings meanwhile.
    """

    rules: PreparedRules | RedactedRules
    settings: PreparedSettings | RedactedSettings
    settings_counts: PendingCounts
    chunks: RankedChunks | RedactedChunks
    synopsis: RedactedFragments
    notes: list[RedactedFragments]


class CountedSources(NamedTuple):
    """What sources returned, after counting."""

    rules: PreparedRules
    settings: PreparedSettings
    chunks: RankedChunks
    synopsis: Sequence[Unit]
    notes: Sequence[Unit]


class RedactedCandidates(NamedTuple):
    """All candidates after redaction; the document is redacted as it is read."""

    sources: RedactedSources | CountedSources
    pinned: PinnedTexts
    manuscript: Manuscript | None


class CountedCandidates(NamedTuple):
    """All candidates after counting."""

    sources: CountedSources
    pinned: PinnedUnits
    around: Surroundings | None
    previous: Unit | None


class KnownCandidates(NamedTuple):
    """The fragments that hold at the author's place, and what was counted of them."""

    gathered: GatheredFragments
    sources: CountedSources


class TrimmedPrompt(NamedTuple):
    """What is kept; the system prompt is rendered and hashed already."""

    system_prompt: SystemPrompt
    user: UserContent


async def assemble(
    plan: Plan, sources: Sequence[Source], tools: TextTools, concurrency: Concurrency | None = None
) -> Assembly:
    """Gather what the plan asks for and make a prompt of it.

    Input that is too long is refused before any source is asked with it.
    """
    reading = None if concurrency is None else concurrency.reading
    composing = None if concurrency is None else concurrency.composing
    await guard_input(plan, tools)
    gathered = await gather(plan, wanted_sources(plan, sources), reading, tools.memory.results)
    if known_candidates(plan, gathered, tools) is None:
        # Sources have searched just now: composing takes as long again, so others have a turn first.
        await lowlevel.checkpoint()
    try:
        return compose(plan, gathered, tools.within(INLINE_CHARACTERS))
    except NotInMemoryError:
        return await to_thread.run_sync(compose, plan, gathered, tools, limiter=composing)


async def guard_input(plan: Plan, tools: TextTools) -> None:
    """Refuse a selection or additional input that alone is over the limit."""
    sent = input_fragments(plan)
    for limit in (MAX_INPUT_TOKENS, plan.allowances.total):
        guard_characters(sent, limit, tools)
    if any(len(fragment.text) > MAX_INPUT_TOKENS for fragment in sent):
        await to_thread.run_sync(_guard_long_input, sent, tools)


def _guard_long_input(sent: Sequence[Fragment], tools: TextTools) -> None:
    try:
        guard_lengths(sent, tools)
    except TokenizerFailedError:
        guard_lengths(sent, tools.with_tokenizer(ByteTokenizer()))


def compose(plan: Plan, gathered: GatheredFragments, tools: TextTools) -> Assembly:
    """Make a prompt of what was gathered; count bytes instead of tokens if the tokenizer fails."""
    try:
        return _compose(plan, gathered, tools)
    except TokenizerFailedError:
        return _compose(without_tokenizer(plan), gathered, tools.with_tokenizer(ByteTokenizer()))


def without_tokenizer(plan: Plan) -> Plan:
    """Fall back to the default profile, with a warning."""
    return replace(
        plan,
        allowances=allowances_of(BudgetProfile()),
        warnings=(*plan.warnings, Caution(code=WarningCode.CONTEXT_BUDGET_FALLBACK)),
    )


def _compose(plan: Plan, everything: GatheredFragments, tools: TextTools) -> Assembly:
    known = known_candidates(plan, everything, tools)
    gathered = known.gathered if known else fragments_at_place(plan, mark_pins(plan, everything))
    guard_lengths(_sent_fragments(plan, gathered), tools)
    with redact(plan, gathered, known, tools) as redacted:
        counted = count(plan, redacted, tools)
    keep_candidates(plan, everything, KnownCandidates(gathered, counted.sources), tools)
    guard(plan, gathered, counted, tools)
    trimmed = trim(plan, gathered, counted, tools)
    retrieved = render_retrieved(trimmed, tools)
    immediate = render_layer(Layer.IMMEDIATE, trimmed.user.immediate, tools)
    hashed = hash_prompt(retrieved, trimmed.user, immediate, tools)
    layers = summarise(plan, gathered, trimmed, retrieved, tools)
    return Assembly(
        plan=plan,
        system_prompt=trimmed.system_prompt,
        retrieved=retrieved,
        user_content=join([retrieved.rendered, immediate]),
        prompt_hash=hashed.hash,
        break_points=hashed.break_points,
        layers=layers,
        warnings=tuple(dict.fromkeys(_warnings(plan, gathered, trimmed, layers, tools))),
        failures=gathered.failures,
        chunk_room=trimmed.user.chunk_room,
        tokenizer=tools.tokenizer,
    )


def known_candidates(
    plan: Plan, everything: GatheredFragments, tools: TextTools
) -> KnownCandidates | None:
    """Return what an earlier assembly counted of the very same fragments."""
    if everything.computed is None or plan.pinned:
        return None
    known = everything.computed.get(tools.key)
    return known if isinstance(known, KnownCandidates) else None


def keep_candidates(
    plan: Plan, everything: GatheredFragments, known: KnownCandidates, tools: TextTools
) -> None:
    """Keep what was counted for assemblies to come, if it does not depend on the author's place."""
    if everything.computed is None or plan.pinned or tools.key in everything.computed:
        return
    if not depends_on_place(everything):
        everything.computed[tools.key] = known


def mark_pins(plan: Plan, gathered: GatheredFragments) -> GatheredFragments:
    """Mark the candidates that the author pinned."""
    if not plan.pinned:
        return gathered
    return replace(
        gathered,
        fragments={
            layer: tuple(
                replace(one, pinned=True) if one.source_ref in plan.pinned else one
                for one in fragments
            )
            for layer, fragments in gathered.fragments.items()
        },
        computed=None,
    )


@contextmanager
def redact(
    plan: Plan, gathered: GatheredFragments, known: KnownCandidates | None, tools: TextTools
) -> Generator[RedactedCandidates]:
    """Take secrets out of all candidates: counts and hashes are of what is sent.

    In the block other threads count the settings, which are the most text.
    """
    if known is not None:
        yield _redact_input(plan, known.sources, tools)
        return
    given = gathered.fragments
    retrieved = given[Layer.RETRIEVED]
    tools.spend(UNIT_WORK * sum(len(given[layer]) for layer in DYNAMIC))
    settings = redact_settings(given[Layer.SETTINGS], tools)
    with tools.start_counting(settings.texts, ahead=True) as settings_counts:
        sources = RedactedSources(
            rules=redact_rules(given[Layer.RULES], tools),
            settings=settings,
            settings_counts=settings_counts,
            chunks=redact_chunks(tuple(f for f in retrieved if not f.is_synopsis), tools),
            synopsis=redact_fragments([f for f in retrieved if f.is_synopsis], tools),
            notes=_redact_batches(given[Layer.IMMEDIATE], tools),
        )
        yield _redact_input(plan, sources, tools)


def _redact_input(
    plan: Plan, sources: RedactedSources | CountedSources, tools: TextTools
) -> RedactedCandidates:
    """Add what the author sent, redacted, to what the sources returned."""
    document = plan.document
    manuscript = None if document is None else Manuscript(document.text, document.here.start, tools)
    return RedactedCandidates(sources, redact_pinned(plan, manuscript, tools), manuscript)


def count(plan: Plan, redacted: RedactedCandidates, tools: TextTools) -> CountedCandidates:
    """Count everything exactly; the settings last, which other threads count meanwhile."""
    shows = shows_document(plan)
    manuscript = redacted.manuscript if shows else None
    return CountedCandidates(
        pinned=count_pinned(plan, redacted.pinned, tools),
        around=None if manuscript is None else surroundings_of(plan, manuscript, tools),
        previous=_previous(plan, tools) if shows else None,
        sources=_count_sources(redacted.sources, tools),
    )


def _count_sources(sources: RedactedSources | CountedSources, tools: TextTools) -> CountedSources:
    if isinstance(sources, CountedSources):
        return sources
    return CountedSources(
        rules=count_rules(sources.rules, tools),
        chunks=count_chunks(sources.chunks, tools),
        synopsis=count_fragments(sources.synopsis, tools),
        notes=_count_batches(sources.notes, tools),
        settings=count_settings(sources.settings, sources.settings_counts, tools),
    )


def redact_chunks(
    fragments: tuple[Fragment, ...], tools: TextTools
) -> RankedChunks | RedactedChunks:
    """Redact what was retrieved unless the same is kept from before."""
    key = (tools.key, fragments)
    ranked: RankedChunks | None = tools.memory.chunks.peek(key)
    return ranked or RedactedChunks(key, _redact_batches(fragments, tools))


def count_chunks(chunks: RankedChunks | RedactedChunks, tools: TextTools) -> RankedChunks:
    """Count and rank what was retrieved, and keep it unless `guard` is going to refuse it."""
    if isinstance(chunks, RankedChunks):
        return chunks
    units = _count_batches(chunks.batches, tools)
    ranked = RankedChunks(units)
    if ranked.hosted_tokens <= MAX_INPUT_TOKENS:
        tools.memory.chunks.put(chunks.key, ranked)
    return ranked


def _previous(plan: Plan, tools: TextTools) -> Unit | None:
    """Return the end of the chapter before, as much of it as the window lacks."""
    previous, start = plan.previous, previous_start(plan)
    if previous is None:
        return None
    key = ("previous", tools.key, previous, start)
    unit: Unit | None = tools.memory.layers.peek(key)
    if unit is None and previous.text[start:].strip():
        unit = _read_previous(previous, start, tools)
        tools.memory.layers.put(key, unit)
    return unit


def _read_previous(previous: Document, start: int, tools: TextTools) -> Unit:
    end, above = len(previous.text.rstrip()), len(previous.front_matter)
    first = previous.first_line + count_line_ends(previous.text[:start])
    last = previous.first_line + count_line_ends(previous.text[:end])
    fragment = Fragment(
        layer=Layer.IMMEDIATE,
        source="document",
        source_ref=f"{previous.source_ref}#L{first}-L{last}",
        text=Manuscript(previous.text, end, tools).read_span(start, end),
        extent=Extent(previous.source_ref, above + start, above + end),
    )
    (unit,) = count_fragments(redact_fragments([fragment], tools), tools)
    return unit


def guard(
    plan: Plan, gathered: GatheredFragments, counted: CountedCandidates, tools: TextTools
) -> None:
    """Refuse more than 64 000 tokens of rules, pinned text and what hosts sent."""
    sources = counted.sources
    tokens = sources.rules.before_tokens + counted.pinned.tokens
    tokens += sources.chunks.hosted_tokens + hosted_tokens(sources.notes)
    if any(fragment.hosted for fragment in gathered.fragments[Layer.SETTINGS]):
        tokens += hosted_tokens(sources.settings.units)
    if tokens > MAX_INPUT_TOKENS:
        rules = gathered.fragments[Layer.RULES]
        refuse_input([*rules, *_sent_fragments(plan, gathered)], tools)


def trim(
    plan: Plan, gathered: GatheredFragments, counted: CountedCandidates, tools: TextTools
) -> TrimmedPrompt:
    """Decide what is kept: first of the system prompt, then, in the room left, of the rest."""
    sources, rules = counted.sources, counted.sources.rules
    mentions = NOT_MENTIONED
    earlier: tuple[tuple[str, int], ...] = ()
    if plan.document is not None and rules.tokens > plan.allowances.rules_line:
        mentions = entity_mentions(rules.entities, plan.document.text, tools)
        earlier = gathered.earlier
    given = SystemPromptInput(
        rules=gathered.fragments[Layer.RULES],
        settings=gathered.fragments[Layer.SETTINGS],
        left_out=tuple(item for item in gathered.left_out if item.layer in STABLE),
        allowances=plan.allowances,
        mentioned=mentions.mentioned,
        often=mentions.often,
        earlier=earlier,
        states=gathered.states,
    )
    stable = system_prompt(given, rules, sources.settings, tools)
    rest = UserContentInput(
        pinned=counted.pinned,
        chunks=sources.chunks,
        synopsis=sources.synopsis,
        notes=sources.notes,
        around=counted.around,
        previous=counted.previous,
    )
    return TrimmedPrompt(stable, trim_user_content(plan, stable, rest, tools))


def render_retrieved(trimmed: TrimmedPrompt, tools: TextTools) -> RetrievedText:
    """Render Retrieved, unless the very same stood behind the same system prompt before."""
    user, before = trimmed.user, trimmed.system_prompt
    evidence = tuple([decision.evidence for decision in user.retrieved])
    key = (tools.key, before.hash, before.rules_hash, user.whole_chapters, *map(id, evidence))
    return tools.memory.retrieved.get(key, lambda: _render_retrieved(trimmed, evidence, tools))


def _render_retrieved(
    trimmed: TrimmedPrompt, evidence: tuple[TrimEvidence, ...], tools: TextTools
) -> RetrievedText:
    system_prompt = trimmed.system_prompt
    rendered = render_layer(Layer.RETRIEVED, trimmed.user.retrieved, tools)
    prompt, up_to_rules = system_prompt.prompt, system_prompt.up_to_rules
    end = PromptEnd(system_prompt.hasher.copy(), system_prompt.bytes, prompt.tokens)
    points = [
        BreakPoint(
            "rules", system_prompt.rules_hash, system_prompt.rules_bytes, up_to_rules.tokens
        ),
        end.break_point("systemPrompt"),
        *_break_points(_retrieved_parts(trimmed.user, tools), end),
    ]
    return RetrievedText(
        rendered=rendered,
        encoded=encode_text(rendered.text),
        break_points=tuple(points),
        hasher=end.hasher,
        bytes=end.bytes,
        tokens=end.tokens,
        evidence=evidence,
        outcome=replace(_recall_outcome(trimmed.user.retrieved, tools), decisions=()),
    )


def hash_prompt(
    retrieved: RetrievedText, user: UserContent, immediate: Rendered, tools: TextTools
) -> HashedPrompt:
    """Return the SHA-256 of the whole prompt, going on from where Retrieved ends, and its break points."""
    end = PromptEnd(retrieved.hasher.copy(), retrieved.bytes, retrieved.tokens)
    parts = list(_window_parts(user, tools))
    points = tuple(_break_points(parts, end))
    end.hasher.update(immediate.text[sum(len(part.text) for part in parts) :].encode())
    return HashedPrompt(end.hasher.hexdigest(), retrieved.break_points + points)


def summarise(
    plan: Plan,
    gathered: GatheredFragments,
    trimmed: TrimmedPrompt,
    retrieved: RetrievedText,
    tools: TextTools,
) -> dict[Layer, LayerOutcome]:
    """Add up the outcome of each layer, with the candidates that could not be read."""
    left_out = [item for item in (*gathered.left_out, *plan.left_out) if item.layer in DYNAMIC]
    unread = drop_unread(left_out, tools) if left_out else []
    untimely = _drop_untimely(gathered.untimely, tools)
    user, stable = trimmed.user, trimmed.system_prompt
    more = of_layer(Layer.RETRIEVED, (*unread, *untimely))
    outcomes = {
        Layer.RULES: stable.rules,
        Layer.SETTINGS: stable.settings,
        Layer.RETRIEVED: _recall_outcome((*user.retrieved, *more), tools)
        if more
        else replace(retrieved.outcome, decisions=user.retrieved),
        Layer.IMMEDIATE: summarise_layer(
            (*user.immediate, *of_layer(Layer.IMMEDIATE, (*unread, *untimely)))
        ),
    }
    for layer in STABLE:
        if added := of_layer(layer, untimely):
            outcomes[layer] = _recall_outcome((*outcomes[layer].decisions, *added), tools)
    return outcomes


def _recall_outcome(decisions: tuple[Decision, ...], tools: TextTools) -> LayerOutcome:
    """Add up the decisions on a layer, unless the very same evidence was added up before."""
    key = tuple([id(decision.evidence) for decision in decisions])
    known: LayerOutcome | None = tools.memory.outcomes.peek(key)
    if known is not None:
        return replace(known, decisions=decisions)
    outcome = summarise_layer(decisions)
    tools.memory.outcomes.put(key, replace(outcome, decisions=()))
    return outcome


class UntimelyDecisions(NamedTuple):
    """The decisions on what does not hold at a place, as they are kept between assemblies."""

    decisions: list[Decision]

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep them; their texts are kept elsewhere, too."""
        return 500 * (1 + len(self.decisions))


def _drop_untimely(untimely: Sequence[UntimelyFragment], tools: TextTools) -> list[Decision]:
    """Record what does not hold at the author's place, redacted and counted like all else."""
    if not untimely:
        return []
    key = (tools.key, tuple(untimely))
    dropped: UntimelyDecisions | None = tools.memory.layers.peek(key)
    if dropped is None:
        units = count_fragments(redact_fragments([one.fragment for one in untimely], tools), tools)
        pairs = zip(units, untimely, strict=True)
        dropped = UntimelyDecisions([drop(unit, one.rule) for unit, one in pairs])
        tools.memory.layers.put(key, dropped)
    return dropped.decisions


def _warnings(
    plan: Plan,
    gathered: GatheredFragments,
    trimmed: TrimmedPrompt,
    layers: Mapping[Layer, LayerOutcome],
    tools: TextTools,
) -> Iterator[Caution]:
    """Return the warnings of the plan, of the sources and of trimming."""
    for warning in (*plan.warnings, *gathered.warnings):
        yield warning.with_redacted_texts(lambda text: visible_ref(text, tools))
    for summary in plan.skill.summaries:
        if summary not in gathered.summaries:
            yield Caution(
                code=WarningCode.SKILL_SOURCE_ABSENT,
                wording=_SUMMARY_MISSING[summary],
                details=(("summary", summary),),
            )
    rules, retrieved = layers[Layer.RULES], layers[Layer.RETRIEVED]
    if trimmed.system_prompt.rules_over:
        yield _rules_over(trimmed.system_prompt)
    if Rule.CONSTRAINT_LIMIT in rules.rules:
        yield Caution(code=WarningCode.CONTEXT_CONSTRAINT_LIMIT, layer=Layer.RULES)
    if Rule.CHUNK_LIMIT in retrieved.rules:
        yield Caution(code=WarningCode.CONTEXT_RETRIEVED_CHUNK_LIMIT, layer=Layer.RETRIEVED)
    if plan.skill.rules is None and retrieved.truncated and not retrieved.chunks:
        starved = caution(WarningCode.CONTEXT_RETRIEVED_STARVED)
        yield replace(starved, layer=Layer.RETRIEVED)
    for layer, outcome in layers.items():
        minimum = plan.allowances.minimum(layer)
        if outcome.is_below(minimum):
            yield _minimum_unmet(layer, outcome.tokens, minimum)


def _rules_over(stable: SystemPrompt) -> Caution:
    """Warn that rules are over their line, and name whoever is mentioned and left out all the same."""
    lost = stable.lost
    if not lost:
        return Caution(code=WarningCode.CONTEXT_RULES_OVERBUDGET, layer=Layer.RULES)
    return Caution(
        code=WarningCode.CONTEXT_RULES_OVERBUDGET,
        wording=Wording(
            f"named in this chapter and left out all the same: {', '.join(lost)}",
            f"这一章提到，却没带上：{'、'.join(lost)}",
        ),
        layer=Layer.RULES,
        details=(("characters", "、".join(lost)),),
    )


def _minimum_unmet(layer: Layer, tokens: int, minimum: int) -> Caution:
    figures = f"{tokens} / {minimum} tokens"
    return Caution(
        code=WarningCode.CONTEXT_MINIMUM_UNMET,
        wording=Wording(f"{layer} ({figures})", f"{layer}（{figures}）"),
        layer=layer,
        details=(("tokens", tokens), ("minimumTokens", minimum)),
    )


def _sent_fragments(plan: Plan, gathered: GatheredFragments) -> list[Fragment]:
    """List what hosts and the author sent, rules aside."""
    layers = (Layer.SETTINGS, *DYNAMIC)
    hosted = [f for layer in layers for f in gathered.fragments[layer] if f.hosted]
    return [*hosted, *input_fragments(plan)]


def _redact_batches(fragments: Sequence[Fragment], tools: TextTools) -> list[RedactedFragments]:
    starts = range(0, len(fragments), BATCH)
    return [redact_fragments(fragments[start : start + BATCH], tools) for start in starts]


def _count_batches(batches: Iterable[RedactedFragments], tools: TextTools) -> list[Unit]:
    """Count batch by batch, and stop when `guard` has enough to refuse."""
    units: list[Unit] = []
    hosted = 0
    for batch in batches:
        counted = count_fragments(batch, tools)
        units += counted
        hosted += hosted_tokens(counted)
        if hosted > MAX_INPUT_TOKENS:
            break
    return units


class PromptEnd:
    """How far a prompt has been hashed: the hasher, and the bytes and tokens up to there."""

    def __init__(self, hasher: Any, size: int, tokens: int) -> None:
        self.hasher, self.bytes, self.tokens = hasher, size, tokens

    def add(self, part: "_UserPart") -> None:
        """Go on to the end of a part."""
        data = part.text.encode()
        self.hasher.update(data)
        self.bytes += len(data)
        self.tokens += part.tokens

    def break_point(self, after: PartName) -> BreakPoint:
        """Return the break point behind what came last."""
        return BreakPoint(after, self.hasher.hexdigest(), self.bytes, self.tokens)


class _UserPart(NamedTuple):
    """A part of the user content; one without a name ends at no break point."""

    name: PartName | None
    text: str
    tokens: int


def _break_points(parts: Iterable[_UserPart], end: PromptEnd) -> Iterator[BreakPoint]:
    """Return where parts that change at different times meet, in the order of the prompt."""
    for part in parts:
        end.add(part)
        if part.name is not None:
            yield end.break_point(part.name)


def _size(text: str) -> int:
    return len(text.encode())


def _retrieved_parts(user: UserContent, tools: TextTools) -> Iterator[_UserPart]:
    """Cut Retrieved where parts of different life meet."""
    retrieved = [decision for decision in user.retrieved if decision.is_kept]
    synopsis = [decision for decision in retrieved if decision.kind is FragmentKind.SYNOPSIS]
    heading = title(Layer.RETRIEVED, empty=not retrieved)
    # While the author wrote the last whole chapter, the story so far ended before it: what a
    # provider cached then ends there.
    last = synopsis[-1:] if user.whole_chapters else []
    if before := synopsis[: len(synopsis) - len(last)]:
        yield _UserPart("story", *_join(heading, before, tools))
        heading = ""
    if last or not before:
        yield _UserPart("story" if last else None, *_join(heading, last, tools))
    passages = retrieved[len(synopsis) :]
    passages_end = next(
        (n for n, decision in enumerate(passages) if decision.is_allusion), len(passages)
    )
    if passages_end:
        yield _UserPart("passages", *_join("", passages[:passages_end], tools))
    if passages_end < len(passages):
        yield _UserPart("allusions", *_join("", passages[passages_end:], tools))


def _window_parts(user: UserContent, tools: TextTools) -> Iterator[_UserPart]:
    """Cut Immediate into blocks, up to the last whole one before the cursor."""
    immediate = [decision for decision in user.immediate if decision.is_kept]
    document = next((n for n, decision in enumerate(immediate) if decision.settled), None)
    if document is None:
        return
    heading = title(Layer.IMMEDIATE, empty=False)
    text, tokens = _join(heading, immediate[:document], tools)
    blocks = list(_settled_blocks(immediate[document]))
    for number, block in enumerate(blocks):
        is_near_cursor = number >= len(blocks) - WINDOW_POINTS
        yield _UserPart(
            "window" if is_near_cursor else None, text + block, tokens + tools.count(block)
        )
        text, tokens = "", 0


def _join(heading: str, decisions: Sequence[Decision], tools: TextTools) -> tuple[str, int]:
    text = heading + "".join(decision.rendered for decision in decisions)
    tokens = tools.count(heading) if heading else 0
    return text, tokens + sum(decision.tokens for decision in decisions)


def _settled_blocks(document: Decision) -> Iterator[str]:
    """Cut what stands before the cursor at paragraphs, from its beginning on.

    Typing adds blocks and changes none of those before.
    """
    start = 0
    for match in _PARAGRAPH_END.finditer(document.rendered, 0, document.settled):
        block = document.rendered[start : match.end()]
        if _size(block) >= BLOCK_BYTES:
            yield block
            start = match.end()
