"""The protocol of an AI provider: a call, its answer, and the text that streams in between."""

from collections.abc import Awaitable, Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any, Protocol

from msgspec import Meta
from msgspec.structs import asdict, replace

from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.text import join_surrogates

LONGEST = 4_000_000
# The errors of a call to any model.
AI_ERRORS = (
    ErrorCode.AI_NOT_CONFIGURED,
    ErrorCode.AI_AUTH_FAILED,
    ErrorCode.AI_RATE_LIMITED,
    ErrorCode.AI_MODEL_UNKNOWN,
    ErrorCode.UPSTREAM_ERROR,
)

OnText = Callable[[str], None]


class Purpose(StrEnum):
    """Why a model is called."""

    WRITE = "write"
    JUDGE = "judge"
    SUMMARISE = "summarise"
    PROBE = "probe"


class Effort(StrEnum):
    """How long a model may think before it writes."""

    NONE = "none"
    """Not at all."""
    LOW = "low"
    """Briefly."""
    MEDIUM = "medium"
    """As long as is usual."""
    HIGH = "high"
    """For long."""


class Sampling(Model, forbid_unknown_fields=True):
    """How a model writes; what is left out is up to the back end.

    `temperature` and `topP` say how freely it chooses its words, `effort` how long it thinks.
    """

    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    top_p: Annotated[float, Meta(gt=0, le=1)] | None = None
    effort: Effort | None = None

    def without(self, names: "frozenset[str] | set[str]") -> "Sampling":
        """Return the same without some of them."""
        return replace(self, **dict.fromkeys(names))

    def names(self) -> frozenset[str]:
        """Return the names of those that are not None."""
        return frozenset(name for name, value in asdict(self).items() if value is not None)


class Block(Model):
    """A part of a text; `marked` if the provider is asked to cache all up to its end."""

    text: str
    marked: bool = False


def cut_blocks(text: str, ends: Iterable[tuple[int, bool]]) -> tuple[Block, ...]:
    """Cut a text at ends in bytes of UTF-8, each with whether it is marked.

    Joined, the blocks are the text.
    """
    data = text.encode()
    blocks: list[Block] = []
    start = 0
    for end, marked in (*ends, (len(data), False)):
        if start < end <= len(data):
            blocks.append(Block(text=data[start:end].decode(), marked=marked))
            start = end
    return tuple(blocks)


class Call(Model):
    """One question to a model.

    `system` and `user` are sent byte for byte. `prefix_hash` is the hash of `system`. The blocks are
    the same texts, cut for providers that cache up to places which a request names. With
    `mark_prefix` the provider is asked to cache up to the marked blocks or, without blocks,
    `system`. `window` is the tokens that prompt and answer need together; 0 if that is not known.
    """

    model: str
    system: str
    user: str
    max_output_tokens: int
    purpose: Purpose = Purpose.WRITE
    prefix_hash: str = ""
    mark_prefix: bool = False
    sampling: Sampling = Sampling()
    window: int = 0
    system_blocks: tuple[Block, ...] = ()
    user_blocks: tuple[Block, ...] = ()

    @property
    def blocks(self) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
        """The blocks of `system` and of `user`; each is one block if it was not cut."""
        whole = Block(text=self.system, marked=True)
        return self.system_blocks or (whole,), self.user_blocks or (Block(text=self.user),)


class Usage(Model):
    """Tokens as the provider counted them; `inputTokens` includes what came from its cache."""

    input_tokens: int
    """Tokens of the prompt, those from the cache included."""
    output_tokens: int
    """Tokens of the answer, thinking included."""
    cache_read_tokens: int = 0
    """How many of the input came from the provider's cache."""
    cache_write_tokens: int = 0
    """How many of the input it wrote to its cache."""


class Stop(StrEnum):
    """Why an answer ended."""

    END = "end"
    """The model had finished."""
    LENGTH = "length"
    """It reached the limit of its answer."""
    REFUSED = "refused"
    """The provider or the model refused."""


class Answer(Model):
    """A whole answer; `usage` is None if the provider did not report it.

    `stands_in` if no model wrote the text, and `echo` if it is the prompt itself. `dropped` are the
    names of the sampling parameters of the call that the back end does not know.
    """

    text: str
    stop: Stop = Stop.END
    usage: Usage | None = None
    echo: bool = False
    stands_in: bool = False
    dropped: frozenset[str] = frozenset()


class Provider(Protocol):
    """One AI back end.

    It fails with a DaemonError: AI_NOT_CONFIGURED, AI_AUTH_FAILED, AI_RATE_LIMITED,
    AI_MODEL_UNKNOWN, TIMEOUT or UPSTREAM_ERROR. Cancelling `answer` ends the call upstream.
    """

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        ...

    @property
    def judges(self) -> bool:
        """Whether it can be asked for a verdict."""
        ...

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Ask the model, pass on each piece of text as it comes, and return the whole."""
        ...

    async def close(self) -> None:
        """Close the connections."""
        ...


async def ask_without_unknown(
    call: Call, unknown: set[str], ask: Callable[[Call], Awaitable[Answer]]
) -> Answer:
    """Ask without the parameters that are unknown, or that the back end refuses by name.

    A back end refuses before it answers, so that nothing of an answer is lost or received twice.
    """
    dropped = call.sampling.names() & unknown
    while True:
        asked = replace(call, sampling=call.sampling.without(dropped))
        try:
            return replace(await ask(asked), dropped=dropped)
        except DaemonError as error:
            refused = error.details.get("parameter")
            if refused not in asked.sampling.names():
                raise
            dropped |= {refused}


def usage_from(*, sent: Any, received: Any, read: Any, written: Any) -> Usage | None:
    """Make a usage of a provider's counts; None unless all of them are whole numbers."""
    if not all(isinstance(count, int) for count in (sent, received, read, written)):
        return None
    return Usage(
        input_tokens=sent,
        output_tokens=received,
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


class StreamedText:
    """Collects the pieces of one answer and passes them on, with no character cut in two."""

    def __init__(self, provider: str, on_text: OnText) -> None:
        self._provider = provider
        self._on_text = on_text
        self._length = 0
        self._pieces: list[str] = []
        self._half = ""

    def add(self, piece: str) -> None:
        """Add the next piece; half a character at its end waits for its other half."""
        text = self._half + piece
        self._half = text[-1] if "\ud800" <= text[-1:] <= "\udbff" else ""
        self._pass_on(text[: len(text) - len(self._half)])

    def finish(self) -> str:
        """Return the whole text; half a character at its end is replaced."""
        half, self._half = self._half, ""
        self._pass_on(half)
        return "".join(self._pieces)

    def _pass_on(self, text: str) -> None:
        if text:
            self._length += len(text)
            if self._length > LONGEST:
                raise answer_too_long(self._provider)
            whole = join_surrogates(text)
            self._pieces.append(whole)
            self._on_text(whole)


def answer_too_long(provider: str) -> DaemonError:
    """Make the error of an answer that is longer than any that was asked for."""
    message = Wording(
        f"The answer of {provider} does not end; check its address and the model.",
        f"{provider} 的回答没有结尾；请检查其地址与模型。",
    )
    return DaemonError(ErrorCode.UPSTREAM_ERROR, message, provider=provider, reason="endless")
