"""Put what is kept between the fixed words of the prompt, layer by layer."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from creonowd.context.evidence import Decision
from creonowd.context.fragment import FragmentKind, Layer
from creonowd.context.template import PromptFrame, title
from creonowd.context.text_tools import TextTools


class Rendered(NamedTuple):
    """A part of the prompt: its text, its tokens, and how many of those are fixed words."""

    text: str
    tokens: int
    fixed: int


def render_text(words: str, tools: TextTools) -> Rendered:
    """Render fixed words."""
    tokens = tools.count(words)
    return Rendered(words, tokens, tokens)


def render_layer(layer: Layer, decisions: Sequence[Decision], tools: TextTools) -> Rendered:
    """Render a layer: its title, and what is kept of it in reading order."""
    texts, constraints = _kept(decisions)
    empty = not texts and not constraints
    parts = [render_text(title(layer, empty=empty), tools), _render_units(texts)]
    if constraints:
        parts += [render_text(tools.frame.constraints, tools), _render_units(constraints)]
    return join(parts)


def layer_content(decisions: Sequence[Decision], frame: PromptFrame) -> str:
    """Return what stands below the title of a layer."""
    texts, constraints = _kept(decisions)
    heading = frame.constraints if constraints else ""
    return "".join([*_rendered(texts), heading, *_rendered(constraints)])


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


def _kept(decisions: Sequence[Decision]) -> tuple[list[Decision], list[Decision]]:
    """Return what is kept: what stands before the heading of the constraints, and the rest."""
    kept = [decision for decision in decisions if decision.is_kept]
    kinds = [decision.kind for decision in kept]
    if FragmentKind.CONSTRAINT not in kinds:
        return kept, []
    first = kinds.index(FragmentKind.CONSTRAINT)
    return kept[:first], kept[first:]


def _render_units(kept: Sequence[Decision]) -> Rendered:
    tokens = sum([decision.tokens for decision in kept])
    return Rendered("".join(_rendered(kept)), tokens, 0)


def _rendered(kept: Sequence[Decision]) -> list[str]:
    return [decision.rendered for decision in kept]
