"""What the engine measures with: a tokenizer, the redactor, and one memory for both.

A text that was redacted or counted before is not again, as long as it is remembered.
Knows no layer and no budget.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from typing import Any, NamedTuple, Protocol

from creonowd.context.mentions import Mentions
from creonowd.errors import FAILURES
from creonowd.memo import Memo
from creonowd.redaction import PLACEHOLDER, Redacted, RedactionEvidence, SecretSpan
from creonowd.text import well_formed
from creonowd.tokens.additive import LONG, SHORT, additive_parts
from creonowd.tokens.tokenizer import Counts, Tokenizer

ENTRY = 200

Count = tuple[str, str]

_SMALL = 4096
_AT_ONCE = 200
_COUNTED_AT_ONCE = 999
_ONE_EACH: dict[tuple[object, ...], bool] = {}


class TokenizerFailedError(Exception):
    """The tokenizer failed, or gave something that is no count."""


class TextRedactor(Protocol):
    """Takes secrets out of a text."""

    def redact(self, text: str, source_ref: str = "") -> Redacted:
        """Give the text without its secrets, and evidence that holds none of them."""
        ...

    def find(self, text: str) -> list[SecretSpan]:
        """List what `redact` replaces, in order."""
        ...

    def surely_clean(self, texts: Sequence[str]) -> list[bool]:
        """Tell of each text whether nothing in it could be a secret, at a glance."""
        ...


class RedactedText(NamedTuple):
    """A text as it may be sent: line ends unified, secrets out; and what changed where."""

    text: str
    crlf: bool = False
    stretches: tuple[SecretSpan, ...] = ()
    findings: tuple[tuple[str, int], ...] = ()

    def evidence(self, source_ref: str) -> tuple[RedactionEvidence, ...]:
        """Say what was taken out of one source."""
        return tuple(
            RedactionEvidence(pattern_id=pattern, source_ref=source_ref, match_count=count)
            for pattern, count in self.findings
        )

    def findings_within(self, first: int, last: int) -> tuple[tuple[str, int], ...]:
        """Say what was taken out between two places of the text."""
        found, moved = Counter[str](), 0
        for start, end, pattern in self.stretches:
            found[pattern] += first <= start - moved < last
            moved += end - start - len(PLACEHOLDER)
        return tuple((pattern, count) for pattern, count in sorted(found.items()) if count)

    def place(self, raw: str, offset: int) -> int:
        """Find an offset of the raw text again; one inside a secret lies before it."""
        if self.crlf:
            inside = raw[offset - 1 : offset + 1] == "\r\n" if offset else False
            offset -= raw.count("\r\n", 0, offset) + inside
        moved = 0
        for start, end, _ in self.stretches:
            if offset < end:
                return min(offset, start) - moved
            moved += end - start - len(PLACEHOLDER)
        return min(offset - moved, len(self.text))


class Weighed(Protocol):
    """Whatever the engine makes and remembers."""

    @property
    def weight(self) -> int:
        """Say about how many characters remembering it takes."""
        ...


class Memory:
    """What a daemon remembers between assemblies; every part is bounded."""

    def __init__(self, characters: int = 8_000_000) -> None:
        self.cleaned: Memo[str, RedactedText] = Memo(characters, _weigh_clean)
        self.counted: Memo[Count, int] = Memo(characters // 2, _weigh_count)
        self.prepared: Memo[Any, Any] = Memo(characters, _weigh_made)
        self.layered: Memo[Any, Any] = Memo(2 * characters, _weigh_made)
        self.mentions = Mentions(characters // 2)


class RememberedTokenizer:
    """A tokenizer that counts no text twice, and fails in one way only."""

    def __init__(self, tokenizer: Tokenizer, counted: Memo[Count, int]) -> None:
        self.id = tokenizer.id
        self.version = tokenizer.version
        self.exact = tokenizer.exact
        self.longest = tokenizer.longest
        self._tokenizer = tokenizer
        self._counted = counted

    def count(self, text: str) -> int:
        """Count the tokens of a text exactly; of a long one only the parts that are new."""
        if len(text) < SHORT:
            return self._count(text)
        return self._counted.get(
            (self.id, text), lambda: sum(map(self._count, additive_parts(text)))
        )

    @contextmanager
    def begin_count(self, texts: Sequence[str], *, ahead: bool = False) -> Generator[Counts]:
        """Begin to count many texts; only the long ones are remembered here."""
        short = [text for text in texts if len(text) < LONG]
        with self._tokenizer.begin_count(short, ahead=ahead) as counts:
            yield lambda: self._counted_all(texts, counts)

    def _counted_all(self, texts: Sequence[str], counts: Counts) -> list[int]:
        with _one_failure():
            short = iter([_sound(count) for count in counts()])
        return [next(short) if len(text) < LONG else self.count(text) for text in texts]

    def _count(self, text: str) -> int:
        return self._counted.get((self.id, text), lambda: _measured(self._tokenizer, text))


class TextTools:
    """One tokenizer and the redactor over a shared memory; safe in any thread."""

    def __init__(
        self,
        tokenizer: Tokenizer,
        redactor: TextRedactor,
        memory: Memory,
        *,
        size_limit: int = 20_000,
    ) -> None:
        self.tokenizer = RememberedTokenizer(tokenizer, memory.counted)
        self.memory = memory
        self.size_limit = size_limit
        self.key = (tokenizer.id, tokenizer.version, size_limit)
        self._redactor = redactor

    def count_number(self, number: int) -> int:
        """Count the tokens of a number that a dot follows; small ones mostly are one each."""
        return 1 if 0 < number <= self._ones else self.count(str(number))

    def count_numbers(self, most: int) -> int:
        """Count the tokens of all numbers from 1 on that a dot follows."""
        return most if most <= self._ones else sum(map(self.count_number, range(1, most + 1)))

    @cached_property
    def _ones(self) -> int:
        """Up to which number all are one token, found out once per table with one count."""
        table = self.key[:2]
        if table not in _ONE_EACH:
            numbers = "".join(f"{n}\n" for n in range(1, _COUNTED_AT_ONCE + 1))
            _ONE_EACH[table] = self.count(numbers) == 2 * _COUNTED_AT_ONCE and self.count("\n") == 1
        return _COUNTED_AT_ONCE if _ONE_EACH[table] else 0

    def counting(self, tokenizer: Tokenizer) -> "TextTools":
        """Give the same instruments with another tokenizer."""
        return TextTools(tokenizer, self._redactor, self.memory, size_limit=self.size_limit)

    def clean(self, text: str) -> RedactedText:
        """Unify line ends and take secrets out."""
        return self.memory.cleaned.get(text, lambda: self._clean(text))

    def clean_all(self, texts: Sequence[str]) -> list[RedactedText]:
        """Clean many texts; small ones are looked at together, which costs less than a memory."""
        spotless = self._spotless([text for text in texts if _is_small(text)])
        return [spotless.get(text) or self.clean(text) for text in texts]

    def _spotless(self, texts: Sequence[str]) -> dict[str, RedactedText]:
        found: dict[str, RedactedText] = {}
        for start in range(0, len(texts), _AT_ONCE):
            batch = [well_formed(text) for text in texts[start : start + _AT_ONCE]]
            for text, spotless in zip(batch, self._redactor.surely_clean(batch), strict=True):
                if spotless:
                    found[text] = RedactedText(text)
        return found

    def count(self, text: str) -> int:
        """Count the tokens of a text exactly."""
        return self.tokenizer.count(text)

    def begin_count(
        self, texts: Sequence[str], *, ahead: bool = False
    ) -> AbstractContextManager[Counts]:
        """Begin to count the tokens of each of many texts exactly."""
        return self.tokenizer.begin_count(texts, ahead=ahead)

    def _clean(self, text: str) -> RedactedText:
        crlf = "\r\n" in text
        unified = well_formed(text.replace("\r\n", "\n") if crlf else text)
        redacted = self._redactor.redact(unified)
        if not redacted.evidence:
            return RedactedText(unified, crlf)
        findings = tuple((found.pattern_id, found.match_count) for found in redacted.evidence)
        return RedactedText(redacted.text, crlf, tuple(self._redactor.find(unified)), findings)


def _is_small(text: str) -> bool:
    return len(text) < _SMALL and "\r" not in text


def _measured(tokenizer: Tokenizer, text: str) -> int:
    with _one_failure():
        return _sound(tokenizer.count(text))


@contextmanager
def _one_failure() -> Generator[None]:
    try:
        yield
    except FAILURES as error:
        raise TokenizerFailedError(type(error).__name__) from error


def _sound(count: int) -> int:
    if count < 0:
        raise TokenizerFailedError("negative count")
    return count


def _weigh_clean(text: str, clean: RedactedText) -> int:
    return ENTRY + len(text) + (0 if clean.text is text else len(clean.text))


def _weigh_count(key: Count, _count: int) -> int:
    return ENTRY + len(key[1])


def _weigh_made(_key: Any, value: Weighed) -> int:
    return value.weight
