"""The limit on what one assembly may be given, counted before anything is cut.

It is 64 000 tokens of rules, host chunks, selection and additional input. Found cheaply: what is
too long by its length alone is never counted, and of a long text little more than the limit.
Knows no layer's rules.
"""

from collections.abc import Callable, Sequence
from typing import NoReturn

from creonowd.context.fragment import Fragment
from creonowd.context.instruments import Instruments
from creonowd.context.units import visible_ref
from creonowd.errors import DaemonError, ErrorCode
from creonowd.tokens.truncate import exceeds

MAX_INPUT_TOKENS = 64_000
NAMED = 3


def refuse_long(guarded: Sequence[Fragment], instruments: Instruments) -> None:
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

    def __init__(self, guarded: Callable[[], Sequence[Fragment]], instruments: Instruments) -> None:
        self._guarded = guarded
        self._instruments = instruments
        self._tokens = 0

    def add(self, tokens: int) -> None:
        """Count some more towards the limit."""
        self._tokens += tokens
        if self._tokens > MAX_INPUT_TOKENS:
            _refuse(self._guarded(), self._instruments)


def _refuse(guarded: Sequence[Fragment], instruments: Instruments) -> NoReturn:
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
