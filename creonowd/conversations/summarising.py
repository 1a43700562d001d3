"""Who summarises: the rounds' own words, or a model that fills the same form.

If the model fails, its own words step in; nothing is lost because a summary failed.
"""

from collections.abc import Sequence
from typing import Protocol
from weakref import WeakKeyDictionary

from creonowd.conversations import model_summary
from creonowd.conversations.extractive import extract
from creonowd.conversations.histories import Histories, History, Key, Written
from creonowd.conversations.rounds import Round
from creonowd.conversations.summary import Summary, to_one_sentence, without_secrets
from creonowd.errors import DaemonError
from creonowd.providers.configured import Configured
from creonowd.redaction import Redactor

_extracted: WeakKeyDictionary[Round, Summary] = WeakKeyDictionary()


class Summariser(Protocol):
    """Fills the form from old rounds; None if it cannot."""

    async def summarise(self, rounds: Sequence[Round]) -> Summary | None:
        """Summarise rounds, which are never empty."""
        ...


class ByModel:
    """Asks the configured provider."""

    def __init__(self, ai: Configured, model: str, redactor: Redactor, seconds: float) -> None:
        self._ai = ai
        self._model = model
        self._redactor = redactor
        self._seconds = seconds

    async def summarise(self, rounds: Sequence[Round]) -> Summary | None:
        """Summarise rounds, which are never empty."""
        try:
            provider = await self._ai.current()
        except DaemonError:
            return None
        found = await model_summary.ask(provider, self._model, rounds, self._seconds)
        return None if found is None else without_secrets(found, self._redactor)


def extracted(rounds: Sequence[Round]) -> Summary:
    """Quote rounds that begin a conversation; what they come to is remembered."""
    known = _extracted.get(rounds[-1])
    if known is None:
        known = _extracted[rounds[-1]] = extract(rounds)
    return known


def summary_of(history: History, covers: int) -> Summary:
    """Give the summary of the first rounds: the one that was kept, else their own words."""
    kept = history.written.get(covers)
    return extracted(history.rounds[:covers]) if kept is None else kept.summary


async def settled(
    summariser: Summariser, histories: Histories, key: Key, history: History, covers: int
) -> Written:
    """Give the summary of the first rounds that is kept, or have it written and kept, once.

    Who finds another asking waits for that answer. A disk that takes no summary costs the model's
    words, so that the next turn finds the same ones.
    """
    told = history.rounds[:covers]
    async with histories.summarising(key):
        kept = await histories.summary_of(key, told)
        if kept is not None:
            return kept
        written = await written_by(summariser, history, covers)
        try:
            await histories.keep_summary(key, written, told)
        except DaemonError:
            return Written(covers=covers, summary=extracted(told))
    return written


async def written_by(summariser: Summariser, history: History, covers: int) -> Written:
    """Have the first rounds summarised; their own words step in if that fails."""
    rounds = history.rounds[:covers]
    found = await summariser.summarise(rounds)
    return Written(covers=covers, summary=found or extracted(rounds), by_model=found is not None)


def fitted(summary: Summary, tokens: int, limit: int) -> Summary:
    """Shorten a summary's lines to one sentence each once it has grown too long."""
    return summary if tokens <= limit else to_one_sentence(summary)
