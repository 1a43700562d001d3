"""Reads that many wait for at once are made once, and are never older than the question.

Who asks while a read is under way waits for the next one: what the first has seen may already
have changed. Knows keys; knows nothing of what is read.
"""

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar
from weakref import WeakValueDictionary

import anyio

T = TypeVar("T")


class _Line(Generic[T]):
    def __init__(self) -> None:
        self.turn = anyio.Lock()
        self.begun = 0
        self.done = 0
        self.value: tuple[T, ...] = ()


class Joined(Generic[T]):
    """One line of readers per key; a line is forgotten when nobody stands in it."""

    def __init__(self) -> None:
        self._lines: WeakValueDictionary[Hashable, _Line[T]] = WeakValueDictionary()

    async def read(self, key: Hashable, make: Callable[[], Awaitable[T]]) -> T:
        """Give what a read that began after this call has found; make it if nobody has.

        If a read fails, whoever made it is told and the next in line tries again.
        """
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line()
        asked = line.begun
        async with line.turn:
            if line.done <= asked:
                line.begun += 1
                begun = line.begun
                line.value = (await make(),)
                line.done = begun
            return line.value[0]
