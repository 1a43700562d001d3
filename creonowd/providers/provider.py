"""What the daemon asks of an AI back end. Knows no back end."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any, Protocol

from creonowd.model import Model
from creonowd.providers import sdk

Heard = Callable[[str], None]


class Purpose(StrEnum):
    """Why a model is called."""

    WRITE = "write"
    JUDGE = "judge"
    SUMMARISE = "summarise"


class Call(Model):
    """One question to a model.

    `system` and `user` are sent byte for byte. `prefix_hash` is the hash of `system`; with
    `mark_prefix` the provider is told that `system` is worth caching.
    """

    model: str
    system: str
    user: str
    max_output_tokens: int
    purpose: Purpose = Purpose.WRITE
    prefix_hash: str = ""
    mark_prefix: bool = False


class Usage(Model):
    """Tokens as the provider counted them; `inputTokens` includes what came from its cache."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0


def counted(*, sent: Any, said: Any, read: Any, written: Any) -> Usage | None:
    """Take down what a provider says it counted; None unless all of it is whole numbers."""
    if not all(isinstance(count, int) for count in (sent, said, read, written)):
        return None
    return Usage(
        input_tokens=sent, output_tokens=said, cache_read_tokens=read, cache_write_tokens=written
    )


class Stop(StrEnum):
    """Why an answer ended."""

    END = "end"
    LENGTH = "length"
    REFUSED = "refused"


class Answer(Model):
    """A whole answer; `usage` is None if the provider did not tell."""

    text: str
    stop: Stop = Stop.END
    usage: Usage | None = None


class Provider(Protocol):
    """One AI back end.

    What it fails with is a DaemonError: AI_NOT_CONFIGURED, AI_AUTH_FAILED, AI_RATE_LIMITED,
    TIMEOUT or UPSTREAM_ERROR. Cancelling `answer` ends the call upstream.
    """

    @property
    def name(self) -> str:
        """What it is called in the settings."""
        ...

    @property
    def judges(self) -> bool:
        """Whether it can be asked for a verdict."""
        ...

    async def answer(self, call: Call, heard: Heard) -> Answer:
        """Ask, hand over each piece of text as it is heard, and return the whole."""
        ...

    async def close(self) -> None:
        """Let go of connections."""
        ...


LONGEST = 4_000_000


class StreamedText:
    """The pieces of one answer in their order; `provider` is to blame if they never end."""

    def __init__(self, provider: str, heard: Heard) -> None:
        self._provider = provider
        self._heard = heard
        self._length = 0
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> None:
        """Take in the next piece and pass on what is whole."""
        text = self._half + piece
        self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        self._pass_on(text[: len(text) - len(self._half)])

    def whole(self) -> str:
        """Give all of it; a half that nothing followed is replaced."""
        half, self._half = self._half, ""
        self._pass_on(half)
        return "".join(self._pieces)

    def _pass_on(self, text: str) -> None:
        if text:
            self._length += len(text)
            if self._length > LONGEST:
                raise sdk.endless(self._provider)
            sound = _sound(text)
            self._pieces.append(sound)
            self._heard(sound)


def _sound(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
