"""Simulators of prompt caches: what each provider would read from its cache and write to it.

A request is a row of tokens, cut into blocks. The rules are those of the providers' documentation,
read on 2026-11-18; what it leaves open is decided here, always against us:

- Anthropic (platform.claude.com, prompt caching): a prefix is cached at a marked block only, at
  most four marks, for five minutes or an hour from its last use. A mark also finds what was
  written up to 20 blocks before it.
- OpenAI from GPT-5.6 on (developers.openai.com, prompt caching; the reference of
  `prompt_cache_options`): a prefix matches exactly at a break point, with no shorter one to fall
  back on. The latest four break points are written, the latest 80 are matched, and they live for
  30 minutes. Without break points one stands at the end of the last message.
- OpenAI before that: the longest common prefix, from 1024 tokens on in steps of 128; it lives for
  5 to 10 minutes, of which five are counted.
- DeepSeek (api-docs.deepseek.com, context caching): a stored unit counts if all of it matches.
  Units are the ends of earlier inputs and prefixes that two requests had in common. Units at fixed
  intervals, whose length is not stated, are left out.
- Gemini (ai.google.dev, context caching, of 2026-10-13): implicit from 4096 tokens on. That the
  longest common prefix counts, and for five minutes, is an assumption: nothing is guaranteed.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from creonowd.text import common_prefix

RULES_AS_OF = "2026-11-18"
FIVE_MINUTES = 300.0
HALF_AN_HOUR = 1_800.0
AN_HOUR = 3_600.0
MOST_MARKS = 4
LOOK_BACK = 20
MOST_BREAK_POINTS = 80


class Request(NamedTuple):
    """The tokens of a prompt, where its blocks end, and when it is sent, in seconds.

    `marked` are the block ends that are marked for caching; without any, all ends are.
    """

    tokens: tuple[int, ...]
    ends: tuple[int, ...]
    at: float = 0.0
    marked: tuple[int, ...] = ()

    @property
    def marks(self) -> tuple[int, ...]:
        """The block ends that are marked for caching."""
        return self.marked or self.ends


class CacheUse(NamedTuple):
    """How many tokens of a request were read from the cache, written to it, and neither."""

    read: int
    written: int
    fresh: int

    @property
    def total(self) -> int:
        """All tokens of the request."""
        return self.read + self.written + self.fresh


class PromptCache(Protocol):
    """The cache of one provider."""

    def send(self, request: Request) -> CacheUse:
        """Return what becomes of a request, and remember it."""
        ...


class _Prefixes:
    """Prefixes that were stored, with the time at which each is forgotten."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[tuple[int, ...], float] = {}

    def holds(self, prefix: tuple[int, ...], at: float) -> bool:
        return self._until.get(prefix, -1.0) >= at

    def put(self, prefix: tuple[int, ...], at: float) -> None:
        self._until[prefix] = at + self._seconds


class MarkedCache:
    """Anthropic's: up to marked blocks, of which there are four at the most."""

    def __init__(self, minimum: int, seconds: float = FIVE_MINUTES) -> None:
        self._minimum = minimum
        self._stored = _Prefixes(seconds)

    def send(self, request: Request) -> CacheUse:
        """Read the longest stored prefix that a mark finds; write up to the last mark."""
        marks = [end for end in request.marks if end >= self._minimum][-MOST_MARKS:]
        read = max((self._longest_found(request, mark) for mark in marks), default=0)
        for end in {read, *marks} - {0}:
            self._stored.put(request.tokens[:end], request.at)
        return _use(request, read, max(marks, default=0))

    def _longest_found(self, request: Request, mark: int) -> int:
        near = [end for end in request.ends if end <= mark][-LOOK_BACK - 1 :]
        held = (e for e in reversed(near) if self._stored.holds(request.tokens[:e], request.at))
        return next(held, 0)


class BreakPointCache:
    """OpenAI's from GPT-5.6 on: exactly at break points."""

    def __init__(self, minimum: int = 1024) -> None:
        self._minimum = minimum
        self._stored = _Prefixes(HALF_AN_HOUR)

    def send(self, request: Request) -> CacheUse:
        """Read the longest break point that was written; write the last four."""
        points = [end for end in request.marks if end >= self._minimum][-MOST_BREAK_POINTS:]
        held = [e for e in points if self._stored.holds(request.tokens[:e], request.at)]
        read = max(held, default=0)
        written = points[-MOST_MARKS:]
        for end in {read, *written} - {0}:
            self._stored.put(request.tokens[:end], request.at)
        return _use(request, read, max(written, default=0))


class PrefixCache:
    """The longest common prefix with a request of late, from a minimum on in steps."""

    def __init__(self, minimum: int, step: int = 1, seconds: float = FIVE_MINUTES) -> None:
        self._minimum = minimum
        self._step = step
        self._seconds = seconds
        self._sent: list[Request] = []

    def send(self, request: Request) -> CacheUse:
        """Read what the request has in common with one of late."""
        late = [r for r in self._sent if r.at + self._seconds >= request.at]
        shared = longest_common(request, late)
        read = 0
        if shared >= self._minimum:
            read = self._minimum + (shared - self._minimum) // self._step * self._step
        self._sent.append(request)
        return _use(request, read, 0)


class UnitCache:
    """DeepSeek's: units of which all must match."""

    def __init__(self) -> None:
        self._units: set[tuple[int, ...]] = set()
        self._sent: list[Request] = []

    def send(self, request: Request) -> CacheUse:
        """Read the longest unit that the request begins with; store its end and what it shares."""
        lengths = sorted({len(unit) for unit in self._units}, reverse=True)
        fitting = (n for n in lengths if n <= len(request.tokens))
        matching = (n for n in fitting if request.tokens[:n] in self._units)
        read = next(matching, 0)
        for earlier in self._sent:
            if shared := longest_common(request, [earlier]):
                self._units.add(request.tokens[:shared])
        self._units.add(request.tokens)
        self._sent.append(request)
        return _use(request, read, 0)


def possible(requests: Sequence[Request]) -> float:
    """Return the share of tokens that a cache could read that forgets nothing and has no minimum."""
    shared = [longest_common(request, requests[:n]) for n, request in enumerate(requests)]
    return sum(shared) / sum(len(request.tokens) for request in requests)


def longest_common(request: Request, earlier: Iterable[Request]) -> int:
    """Return the length of the longest beginning that a request has in common with another."""
    return max((common_prefix(request.tokens, other.tokens) for other in earlier), default=0)


def _use(request: Request, read: int, end: int) -> CacheUse:
    written = max(0, end - read)
    return CacheUse(read, written, len(request.tokens) - read - written)
