"""Setting what stays between the fixed words, layer by layer. Knows no rule and no budget."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from creonowd.context.evidence import Decision
from creonowd.context.fragment import FragmentKind, Layer
from creonowd.context.template import CONSTRAINTS, title
from creonowd.context.text_tools import TextTools


class Rendered(NamedTuple):
    """A stretch of the prompt: its text, its tokens, and how many of those are fixed words."""

    text: str
    tokens: int
    fixed: int


def render_text(words: str, instruments: TextTools) -> Rendered:
    """Set fixed words."""
    tokens = instruments.count(words)
    return Rendered(words, tokens, tokens)


def render_layer(layer: Layer, verdicts: Sequence[Decision], instruments: TextTools) -> Rendered:
    """Set a layer: its title, and what stays in it in reading order."""
    staying = [verdict for verdict in verdicts if verdict.stays]
    kinds = [verdict.kind for verdict in staying]
    first = kinds.index(FragmentKind.CONSTRAINT) if FragmentKind.CONSTRAINT in kinds else None
    pieces = [render_text(title(layer, empty=not staying), instruments), _set(staying[:first])]
    if first is not None:
        pieces += [render_text(CONSTRAINTS, instruments), _set(staying[first:])]
    return join(pieces)


def join(pieces: Iterable[Rendered]) -> Rendered:
    """Set one stretch after the other; their tokens add up."""
    listed = list(pieces)
    return Rendered(
        "".join(piece.text for piece in listed),
        sum(piece.tokens for piece in listed),
        sum(piece.fixed for piece in listed),
    )


def _set(staying: Sequence[Decision]) -> Rendered:
    tokens = sum([verdict.evidence.after_tokens for verdict in staying])
    return Rendered("".join([verdict.rendered for verdict in staying]), tokens, 0)
