"""Setting what stays between the fixed words, layer by layer. Knows no rule and no budget."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from creonowd.context.fragment import Kind, Layer
from creonowd.context.instruments import Instruments
from creonowd.context.template import CONSTRAINTS, title
from creonowd.context.verdict import Verdict


class Set(NamedTuple):
    """A stretch of the prompt: its text, its tokens, and how many of those are fixed words."""

    text: str
    tokens: int
    fixed: int


def set_words(words: str, instruments: Instruments) -> Set:
    """Set fixed words."""
    tokens = instruments.count(words)
    return Set(words, tokens, tokens)


def set_layer(layer: Layer, verdicts: Sequence[Verdict], instruments: Instruments) -> Set:
    """Set a layer: its title, and what stays in it in reading order."""
    staying = [verdict for verdict in verdicts if verdict.stays]
    kinds = [verdict.kind for verdict in staying]
    first = kinds.index(Kind.CONSTRAINT) if Kind.CONSTRAINT in kinds else None
    pieces = [set_words(title(layer, empty=not staying), instruments), _set(staying[:first])]
    if first is not None:
        pieces += [set_words(CONSTRAINTS, instruments), _set(staying[first:])]
    return join(pieces)


def join(pieces: Iterable[Set]) -> Set:
    """Set one stretch after the other; their tokens add up."""
    listed = list(pieces)
    return Set(
        "".join(piece.text for piece in listed),
        sum(piece.tokens for piece in listed),
        sum(piece.fixed for piece in listed),
    )


def _set(staying: Sequence[Verdict]) -> Set:
    tokens = sum([verdict.evidence.after_tokens for verdict in staying])
    return Set("".join([verdict.rendered for verdict in staying]), tokens, 0)
