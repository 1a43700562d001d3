"""A provider without a model: it follows a script.

Without one it stands in for a model: as an assistant it has ready answers for the sample novel, and
says elsewhere that no AI is connected; as an echo it returns the prompt. That is what would have
been sent, so `sha256(output)` is the run's `promptHash`.
"""

from collections import deque
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec
from anyio import to_thread
from msgspec import Meta

from creonowd.errors import DaemonError, ErrorCode, Wording
from creonowd.model import Model
from creonowd.providers.provider import Answer, Call, OnText, Purpose, Stop, StreamedText, Usage

KEPT_CALLS = 64
PIECE = 2048
SAMPLES = Path(__file__).parents[1] / "sample"
# As quick as a person reads.
ASSISTANT_PIECE = 6
ASSISTANT_DELAY_MS = 8
FRAME = 200

NonNegative = Annotated[int, Meta(ge=0)]


class ScriptedAnswer(Model, forbid_unknown_fields=True):
    """One answer of the fake provider."""

    text: str | None = None
    """What it writes; null to write the prompt back."""
    piece: Annotated[int, Meta(ge=1)] = PIECE
    """How many code points it sends at a time."""
    delay_ms: NonNegative = 0
    """How long it waits before each piece, in milliseconds."""
    after: NonNegative = 0
    """After how many pieces `stall` or `fail` happens."""
    stall: bool = False
    """Whether it then falls silent until the call is cancelled."""
    fail: ErrorCode | None = None
    """The error with which the call then fails, such as `AI_RATE_LIMITED`."""
    retry_after_ms: NonNegative | None = None
    """When to try again, as a provider says with AI_RATE_LIMITED; in milliseconds."""
    stop: Stop = Stop.END
    """Why the answer ends."""
    usage: Usage | None = None
    """The tokens that it reports; without it, none, as some providers do."""
    unknown: frozenset[str] = frozenset()
    """Parameters that it refuses to know, such as `temperature`; the run then drops them with a
    warning."""


class Script(Model, forbid_unknown_fields=True):
    """The answers of the fake, in the order of the calls; after the last one it stands in.

    `verdicts` are its answers as a judge; without any it cannot judge. `verdictUsage` is what each
    of them takes.
    """

    steps: tuple[ScriptedAnswer, ...] = ()
    verdicts: tuple[str, ...] = ()
    verdict_usage: Usage | None = None


class ReadyAnswers(Model, forbid_unknown_fields=True):
    """Answers for a novel that is known by these words in its prompt."""

    known_by: tuple[str, ...]
    answers: tuple[str, ...]


class Assistant:
    """Plays the ready answers of the sample novels, one after another and from the beginning again."""

    def __init__(self) -> None:
        self._played = 0

    async def step(self, prompt: str) -> ScriptedAnswer:
        """Return the next answer to a prompt."""
        return await to_thread.run_sync(self._step, prompt)

    def _step(self, prompt: str) -> ScriptedAnswer:
        known = (one for one in _ready_answers() if all(word in prompt for word in one.known_by))
        novel = next(known, None)
        if novel is None:
            return ScriptedAnswer(text=_NOT_CONNECTED.text(chinese=_is_chinese(prompt)))
        text = novel.answers[self._played % len(novel.answers)]
        self._played += 1
        return ScriptedAnswer(text=text, piece=ASSISTANT_PIECE, delay_ms=ASSISTANT_DELAY_MS)


@cache
def _ready_answers() -> list[ReadyAnswers]:
    files = sorted(SAMPLES.glob("*.json"))
    return [msgspec.json.decode(file.read_bytes(), type=ReadyAnswers) for file in files]


def _is_chinese(prompt: str) -> bool:
    """Return whether the fixed words that a prompt begins with are Chinese."""
    return any("\u4e00" <= character <= "\u9fff" for character in prompt[:FRAME])


_NOT_CONNECTED = Wording(
    "(No AI is connected, so nobody wrote this. `creonowd ai add NAME` connects one.)",
    "（尚未连接 AI，这不是模型写的。creonowd ai add 名称 可以连接一个。）",
)


class Fake:
    """The default provider: it needs no network and no key, and the same calls get the same answers.

    Without an `assistant` it echoes what its script does not answer.
    """

    name = "fake"

    def __init__(self, script: Script | None = None, assistant: Assistant | None = None) -> None:
        self.calls: deque[Call] = deque(maxlen=KEPT_CALLS)
        self._assistant = assistant
        self._steps: deque[ScriptedAnswer] = deque()
        self._verdicts: deque[str] = deque()
        self.play(script or Script())

    @property
    def judges(self) -> bool:
        """Whether the script has another verdict."""
        return bool(self._verdicts)

    @property
    def echoes(self) -> bool:
        """Whether the next answer is the prompt."""
        if not self._steps:
            return self._assistant is None
        return self._steps[0].text is None

    @property
    def stands_in(self) -> bool:
        """Whether the next answer is neither scripted nor a model's."""
        return not self._steps or self.echoes

    def play(self, script: Script) -> None:
        """Replace the script."""
        self._steps = deque(script.steps)
        self._verdicts = deque(script.verdicts)
        self._verdict_usage = script.verdict_usage

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Return the script's next answer."""
        self.calls.append(call)
        if call.purpose is Purpose.JUDGE:
            text = self._verdicts.popleft() if self._verdicts else ""
            return Answer(text=text, usage=self._verdict_usage)
        stands_in = self.stands_in
        step = self._steps.popleft() if self._steps else await self._stand_in(call)
        text = call.system + call.user if step.text is None else step.text
        return Answer(
            text=await _stream(text, step, on_text),
            stop=step.stop,
            usage=step.usage,
            echo=step.text is None,
            stands_in=stands_in,
            dropped=call.sampling.names() & step.unknown,
        )

    async def _stand_in(self, call: Call) -> ScriptedAnswer:
        """Return an answer without a model: the assistant's to a run, else the prompt itself."""
        if self._assistant is None or call.purpose is not Purpose.WRITE:
            return ScriptedAnswer()
        return await self._assistant.step(call.system + call.user)

    async def close(self) -> None:
        """Do nothing: there is no connection."""


def read_script(path: Path) -> Script:
    """Read a script from a JSON file; AI_NOT_CONFIGURED says what is wrong with it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Script)
    except OSError as error:
        reason = error.strerror or "unknown reason"
    except msgspec.DecodeError as error:
        reason = str(error)
    raise DaemonError(
        ErrorCode.AI_NOT_CONFIGURED, f"The script of the fake provider cannot be used: {reason}."
    )


async def _stream(text: str, step: ScriptedAnswer, on_text: OnText) -> str:
    streamed = StreamedText(Fake.name, on_text)
    sent = 0
    for start in range(0, len(text), step.piece):
        if sent == step.after:
            await _stall_or_fail(step)
        if step.delay_ms:
            await anyio.sleep(step.delay_ms / 1000)
        streamed.add(text[start : start + step.piece])
        sent += 1
    if sent <= step.after:
        await _stall_or_fail(step)
    return streamed.finish()


async def _stall_or_fail(step: ScriptedAnswer) -> None:
    if step.stall:
        await anyio.sleep_forever()
    if step.fail is not None:
        details: dict[str, Any] = {"provider": Fake.name}
        if step.retry_after_ms is not None:
            details["retryAfterMs"] = step.retry_after_ms
        raise DaemonError(step.fail, **details)
