"""What is heard of an answer, piece by piece: joined up, and text that can be sent on.

Some providers cut inside a character; a half of one waits here for the other.
"""

from creonowd.providers.provider import Heard


class Hearing:
    """The pieces of one answer in their order."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
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
            sound = _sound(text)
            self._pieces.append(sound)
            self._heard(sound)


def _sound(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text
