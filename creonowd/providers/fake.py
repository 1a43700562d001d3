"""A provider without a model: deterministic, scripted, and by default an echo of the prompt.

What it echoes is what would have been sent, so `sha256(output)` is the run's `promptHash`.
"""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import anyio
import msgspec
from msgspec import Meta

from creonowd.errors import DaemonError, ErrorCode
from creonowd.model import Model
from creonowd.providers.provider import Answer, Call, Heard, Purpose, Stop, StreamedText, Usage

KEPT = 64
PIECE = 2048

Count = Annotated[int, Meta(ge=0)]


class ScriptedAnswer(Model, forbid_unknown_fields=True):
    """One answer of the fake.

    Says `text` (the prompt, if there is none) in pieces of `piece` code points with `delayMs`
    before each. `stall` and `fail` happen after `after` pieces; a stall lasts until someone
    cancels it.
    """

    text: str | None = None
    piece: Annotated[int, Meta(ge=1)] = PIECE
    delay_ms: Count = 0
    after: Count = 0
    stall: bool = False
    fail: ErrorCode | None = None
    retry_after_ms: Count | None = None
    stop: Stop = Stop.END
    usage: Usage | None = None


class Script(Model, forbid_unknown_fields=True):
    """What the fake says, in the order of the calls; when it runs out, it echoes.

    `verdicts` are what it says as a judge; without any it cannot judge.
    """

    steps: tuple[ScriptedAnswer, ...] = ()
    verdicts: tuple[str, ...] = ()


class Fake:
    """The default provider: no network, no key, no chance."""

    name = "fake"

    def __init__(self, script: Script | None = None) -> None:
        self.calls: deque[Call] = deque(maxlen=KEPT)
        self._steps: deque[ScriptedAnswer] = deque()
        self._verdicts: deque[str] = deque()
        self.play(script or Script())

    @property
    def judges(self) -> bool:
        """Whether the script holds another verdict."""
        return bool(self._verdicts)

    def play(self, script: Script) -> None:
        """Forget the script and follow another."""
        self._steps = deque(script.steps)
        self._verdicts = deque(script.verdicts)

    async def answer(self, call: Call, heard: Heard) -> Answer:
        """Say what the script says next."""
        self.calls.append(call)
        if call.purpose is Purpose.JUDGE:
            return Answer(text=self._verdicts.popleft() if self._verdicts else "")
        step = self._steps.popleft() if self._steps else ScriptedAnswer()
        text = call.system + call.user if step.text is None else step.text
        return Answer(text=await _say(text, step, heard), stop=step.stop, usage=step.usage)

    async def close(self) -> None:
        """There is nothing to let go of."""


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


async def _say(text: str, step: ScriptedAnswer, heard: Heard) -> str:
    hearing = StreamedText(Fake.name, heard)
    said = 0
    for piece in _pieces(text, step.piece):
        if said == step.after:
            await _misbehave(step)
        if step.delay_ms:
            await anyio.sleep(step.delay_ms / 1000)
        hearing.add(piece)
        said += 1
    if said <= step.after:
        await _misbehave(step)
    return hearing.whole()


def _pieces(text: str, size: int) -> Iterator[str]:
    return (text[start : start + size] for start in range(0, len(text), size))


async def _misbehave(step: ScriptedAnswer) -> None:
    if step.stall:
        await anyio.sleep_forever()
    if step.fail is not None:
        waiting: dict[str, Any] = (
            {} if step.retry_after_ms is None else {"retryAfterMs": step.retry_after_ms}
        )
        raise DaemonError(step.fail, provider=Fake.name, **waiting)
