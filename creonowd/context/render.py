"""Setting what stays between the fixed words, layer by layer. Knows no rule and no budget."""

from collections.abc import Iterable, Iterator, Sequence
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
    first = set_words(title(layer, empty=not staying), instruments)
    return join([first, *_under_title(staying, instruments)])


def join(pieces: Iterable[Set]) -> Set:
    """Set one stretch after the other; their tokens add up."""
    listed = list(pieces)
    return Set(
        "".join(piece.text for piece in listed),
        sum(piece.tokens for piece in listed),
        sum(piece.fixed for piece in listed),
    )


def _under_title(staying: Sequence[Verdict], instruments: Instruments) -> Iterator[Set]:
    headed = False
    for verdict in staying:
        if verdict.kind is Kind.CONSTRAINT and not headed:
            yield set_words(CONSTRAINTS, instruments)
            headed = True
        yield Set(verdict.rendered, verdict.tokens, 0)
