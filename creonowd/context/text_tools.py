"""The tokenizer, the redactor and the fixed words of an assembly, over one memory.

A text that was redacted or counted before is not redacted or counted again while it is kept.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol

from creonowd.context.language import CHINESE, PromptFrame
from creonowd.context.names import Mentions
from creonowd.context.source import ResultCache
from creonowd.errors import library_errors
from creonowd.memo import Memo
from creonowd.redaction import PLACEHOLDER, Redacted, RedactionEvidence, SecretSpan
from creonowd.text import well_formed
from creonowd.tokens.boundaries import LONG_TEXT, SHORT_TEXT, additive_parts, additive_points
from creonowd.tokens.tokenizer import BoundTokenizer, PendingCounts, Tokenizer

ENTRY_WEIGHT = 200

CountKey = tuple[str, str]

# Least characters of a cell of a part.
CELL = 48

_SMALL = 4096
_BATCH = 200
_MOST_NUMBERS = 999
_NUMBERS = "".join(f"{number}\n" for number in range(1, _MOST_NUMBERS + 1))


class TextTools:
    """Redact and count texts with a shared memory; safe in any thread."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        redactor: "TextRedactor",
        memory: "Memory",
        *,
        size_limit: int = 20_000,
        frame: PromptFrame = CHINESE,
        allowance: "WorkAllowance | None" = None,
    ) -> None:
        self.tokenizer = CachingTokenizer(tokenizer, memory.counts, allowance)
        self.memory = memory
        self._allowance = allowance
        self.size_limit = size_limit
        self.frame = frame
        language, secrets = frame.language, redactor.revision
        self.key = (tokenizer.id, tokenizer.version, size_limit, language, secrets)
        self._redactor = redactor

    def with_tokenizer(self, tokenizer: Tokenizer) -> "TextTools":
        """Return the same tools with another tokenizer."""
        return self._with(tokenizer, self._allowance)

    def within(self, characters: int) -> "TextTools":
        """Return the same tools for this many new characters; then NotInMemoryError.

        Results until then stay in the memory, so that the work is not done twice.
        """
        return self._with(self.tokenizer.inner, WorkAllowance(characters))

    def _with(self, tokenizer: Tokenizer, allowance: "WorkAllowance | None") -> "TextTools":
        return TextTools(
            tokenizer,
            self._redactor,
            self.memory,
            size_limit=self.size_limit,
            frame=self.frame,
            allowance=allowance,
        )

    def spend(self, characters: int) -> None:
        """Take work into account that is as much as redacting and counting this many characters."""
        if self._allowance is not None:
            self._allowance.spend(characters)

    def count(self, text: str) -> int:
        """Count the tokens of a text exactly."""
        return self.tokenizer.count(text)

    def part_sums(self, text: str) -> "PartSums":
        """Count the parts of a text whose tokens add up."""
        return self.memory.part_sums.get(
            (self.tokenizer.id, text), lambda: self._make_part_sums(text)
        )

    def _make_part_sums(self, text: str) -> "PartSums":
        parts = list(additive_parts(text))
        starts = list(accumulate(map(len, parts), initial=0))[:-1]
        return PartSums(starts, list(accumulate(map(self.count, parts), initial=0)))

    def cell_sums(self, text: str) -> "PartSums":
        """Count the cells of a part: short pieces of about the same length whose tokens add up.

        A cursor that moves within the part changes the count of one of them.
        """
        return self.memory.cell_sums.get(
            (self.tokenizer.id, text), lambda: self._make_cell_sums(text)
        )

    def _make_cell_sums(self, text: str) -> "PartSums":
        starts = [0]
        for point in additive_points(text, 0, len(text)):
            if point - starts[-1] >= CELL:
                starts.append(point)
        cells = [text[start:end] for start, end in pairwise([*starts, len(text)])]
        return PartSums(starts, list(accumulate(map(self.count, cells), initial=0)))

    def start_counting(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[PendingCounts]:
        """Start to count many texts; the block gets them as `PendingCounts`.

        With `ahead` all of them are counted in other threads, while the block does other work.
        """
        return self.tokenizer.begin_count(texts, ahead=ahead)

    def count_number(self, number: int) -> int:
        """Count the tokens of a number that a dot follows."""
        return 1 if 0 < number <= self._single_tokens else self.count(str(number))

    def count_numbers(self, most: int) -> int:
        """Count the tokens of all numbers from 1 to `most`, each followed by a dot."""
        if most <= self._single_tokens:
            return most
        return sum(map(self.count_number, range(1, most + 1)))

    @cached_property
    def _single_tokens(self) -> int:
        """The number up to which every number is one token."""
        return self.memory.single_tokens.get(self.key[:2], self._find_single_tokens)

    def _find_single_tokens(self) -> int:
        """Count all numbers at once: each is followed by a newline, so they are two tokens each."""
        single = self.tokenizer.count_anew(_NUMBERS) == 2 * _MOST_NUMBERS and self.count("\n") == 1
        return _MOST_NUMBERS if single else 0

    def redact(self, text: str) -> "RedactedText":
        """Unify line ends and take secrets out."""
        return self.memory.redacted.get(text, lambda: self._redact(text))

    def redact_all(self, texts: Sequence[str]) -> list["RedactedText"]:
        """Redact many texts; small ones are checked together, which is cheaper than the memory."""
        unchanged = self._without_secrets([text for text in texts if _is_small(text)])
        return [unchanged.get(text) or self.redact(text) for text in texts]

    def _without_secrets(self, texts: Sequence[str]) -> dict[str, "RedactedText"]:
        found: dict[str, RedactedText] = {}
        self.spend(sum(map(len, texts)) // 4)
        for start in range(0, len(texts), _BATCH):
            batch = [well_formed(text) for text in texts[start : start + _BATCH]]
            for text, spotless in zip(batch, self._redactor.are_clean(batch), strict=True):
                if spotless:
                    found[text] = RedactedText(text)
        return found

    def _redact(self, text: str) -> "RedactedText":
        crlf = "\r\n" in text
        self.spend(len(text))
        unified = well_formed(text.replace("\r\n", "\n") if crlf else text)
        redacted = self._redactor.redact(unified)
        if not redacted.evidence:
            return RedactedText(unified, crlf)
        findings = tuple((found.pattern_id, found.match_count) for found in redacted.evidence)
        return RedactedText(redacted.text, crlf, tuple(self._redactor.find(unified)), findings)


class PartSums(NamedTuple):
    """Where the parts of a text begin, and the tokens before each; the last sum is that of all.

    The tokens of the parts add up.
    """

    starts: list[int]
    sums: list[int]


class RedactedText(NamedTuple):
    """A text as it may be sent, with line ends unified and secrets taken out.

    `secrets` are where they were in the text with unified line ends; `findings` count them by
    pattern.
    """

    text: str
    crlf: bool = False
    secrets: tuple[SecretSpan, ...] = ()
    findings: tuple[tuple[str, int], ...] = ()

    def evidence(self, source_ref: str) -> tuple[RedactionEvidence, ...]:
        """Return the findings as evidence about one source."""
        return tuple(
            RedactionEvidence(pattern_id=pattern, source_ref=source_ref, match_count=count)
            for pattern, count in self.findings
        )

    def findings_between(self, first: int, last: int) -> tuple[tuple[str, int], ...]:
        """Count by pattern what was taken out between two offsets of the text."""
        found, shift = Counter[str](), 0
        for start, end, pattern in self.secrets:
            if first <= start - shift < last:
                found[pattern] += 1
            shift += end - start - len(PLACEHOLDER)
        return tuple(sorted(found.items()))

    def offset_of(self, raw: str, position: int) -> int:
        """Return where a position of the raw text lies in this one; inside a secret, before it."""
        offset = position
        if self.crlf:
            offset -= raw.count("\r\n", 0, position)
            if position and raw[position - 1 : position + 1] == "\r\n":
                offset -= 1
        shift = 0
        for start, end, _ in self.secrets:
            if offset < end:
                return min(offset, start) - shift
            shift += end - start - len(PLACEHOLDER)
        return min(offset - shift, len(self.text))


class CachingTokenizer:
    """A tokenizer that counts no text twice and fails only with `TokenizerFailedError`."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        counts: Memo[CountKey, int],
        allowance: "WorkAllowance | None" = None,
    ) -> None:
        self.inner = tokenizer
        self._allowance = allowance
        self.id = tokenizer.id
        self.version = tokenizer.version
        self.exact = tokenizer.exact
        self.longest = tokenizer.longest
        self._tokenizer = tokenizer
        self._counts = counts
        self.base: CachingTokenizer | None = None
        if isinstance(tokenizer, BoundTokenizer):
            self.base = CachingTokenizer(tokenizer.base, counts)

    def count(self, text: str) -> int:
        """Count the tokens of a text exactly; of a long one only the parts that are new."""
        if len(text) < SHORT_TEXT:
            return self._count(text)
        return self._counts.get(
            (self.id, text), lambda: sum(map(self._count, additive_parts(text)))
        )

    @contextmanager
    def begin_count(self, texts: Sequence[str], *, ahead: bool = False) -> Generator[PendingCounts]:
        """Start to count many texts; only the counts of long ones are kept."""
        short = [text for text in texts if len(text) < LONG_TEXT]
        if not short:
            yield PendingCounts(lambda: [self.count(text) for text in texts])
            return
        if self._allowance is not None:
            self._allowance.spend(sum(map(len, short)))
        with self._tokenizer.begin_count(short, ahead=ahead) as short_counts:
            yield PendingCounts(lambda: self._merge(texts, short_counts))

    def _merge(self, texts: Sequence[str], short_counts: PendingCounts) -> list[int]:
        with library_errors(TokenizerFailedError):
            short = iter([_check_count(count) for count in short_counts.result()])
        return [next(short) if len(text) < LONG_TEXT else self.count(text) for text in texts]

    def _count(self, text: str) -> int:
        return self._counts.get((self.id, text), lambda: self.count_anew(text))

    def count_anew(self, text: str) -> int:
        """Count a text without keeping its count."""
        if self._allowance is not None:
            self._allowance.spend(len(text))
        with library_errors(TokenizerFailedError):
            return _check_count(self._tokenizer.count(text))


class WorkAllowance:
    """How much new text may be worked on where others wait meanwhile."""

    def __init__(self, characters: int) -> None:
        self._left = characters

    def spend(self, characters: int) -> None:
        """Take characters from what is left; NotInMemoryError if too few are left."""
        self._left -= characters
        if self._left < 0:
            raise NotInMemoryError


class NotInMemoryError(Exception):
    """There is too much new text to work on it here."""


class TokenizerFailedError(Exception):
    """The tokenizer failed or returned a number that is no count; bytes can still be counted."""


def _check_count(count: int) -> int:
    if count < 0:
        raise ValueError("A count is negative.")
    return count


class TextRedactor(Protocol):
    """Takes secrets out of a text."""

    @property
    def revision(self) -> int:
        """A number that changes with what is a secret."""
        ...

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        """Return the text without its secrets, and evidence that holds none of them."""
        ...

    def find(self, text: str) -> list[SecretSpan]:
        """List what `redact` replaces, in order."""
        ...

    def are_clean(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it certainly holds no secret; cheaper than `find`."""
        ...


class Cacheable(Protocol):
    """A value that the engine keeps between assemblies."""

    @property
    def weight(self) -> int:
        """About how many characters it takes to keep it."""
        ...


class Memory:
    """What a daemon keeps between assemblies; every part is bounded."""

    def __init__(self, characters: int = 8_000_000) -> None:
        self.redacted: Memo[str, RedactedText] = Memo(characters, _weigh_redacted)
        """Redacted texts."""
        self.counts: Memo[CountKey, int] = Memo(2 * characters, _weigh_count)
        """The tokens of texts."""
        self.part_sums: Memo[CountKey, PartSums] = Memo(characters, _weigh_count)
        """The tokens of the parts of texts."""
        self.cell_sums: Memo[CountKey, PartSums] = Memo(characters // 4, _weigh_count)
        """The tokens of the cells of parts."""
        self.single_tokens: Memo[tuple[str, str], int] = Memo(16)
        """The number up to which every number is one token, by tokenizer."""
        self.units: Memo[Any, Any] = Memo(2 * characters, _weigh_value)
        """Redacted, rendered and counted fragments."""
        self.layers: Memo[Any, Any] = Memo(2 * characters, _weigh_value)
        """Prepared rules and settings, and system prompts, by their input."""
        self.readings: Memo[Any, Any] = Memo(2 * characters, _weigh_value)
        """What was read of documents."""
        self.retrieved: Memo[tuple[object, ...], Any] = Memo(2 * characters, _weigh_value)
        """Retrieved as it was rendered, by the ids of what it was made of."""
        self.outcomes: Memo[tuple[int, ...], Any] = Memo(2 * characters, _weigh_outcome)
        """Sums of a layer, by the ids of its evidence."""
        self.chunks: Memo[Any, Any] = Memo(2 * characters, _weigh_value)
        """Ranked chunks, by what was retrieved."""
        self.results = ResultCache(characters)
        """Results of sources that return the same object again."""
        self.mentions = Mentions(characters // 2)
        """Where texts mention which names."""
        self.document_mentions: Memo[tuple[object, str], Any] = Memo(
            characters // 2, _weigh_mentioned
        )
        """Entities that a document mentions."""


def _is_small(text: str) -> bool:
    return len(text) < _SMALL and "\r" not in text


def _weigh_redacted(text: str, redacted: RedactedText) -> int:
    return ENTRY_WEIGHT + len(text) + (0 if redacted.text is text else len(redacted.text))


def _weigh_count(key: CountKey, _count: object) -> int:
    return ENTRY_WEIGHT + len(key[1])


def _weigh_outcome(key: tuple[int, ...], _outcome: object) -> int:
    return 500 + 100 * len(key)


def _weigh_mentioned(key: tuple[object, str], _found: object) -> int:
    return 2000 + len(key[1])


def _weigh_value(_key: Any, value: Cacheable) -> int:
    return value.weight
