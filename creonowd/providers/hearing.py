"""What is heard of an answer, piece by piece: joined up, and text that can be sent on.

Some providers cut inside a character; a half of one waits here for the other.
"""

from creonowd.providers import faults
from creonowd.providers.provider import Heard

LONGEST = 4_000_000


class Hearing:
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
                raise faults.endless(self._provider)
            sound = _sound(text)
            self._pieces.append(sound)
            self._heard(sound)


def _sound(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
