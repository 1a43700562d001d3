"""A line at the terminal that says what is waited for, and how far it is.

It appears when that has taken a second and goes when it has ended; in a pipe there is none.
"""

import sys
import threading
import time
from types import TracebackType
from typing import Any, Self, cast

from creonowd.errors import Language, Wording
from creonowd.settings import console_language

PATIENCE_SECONDS = 1.0
REDRAW_SECONDS = 0.2
BAR = 20

# What channels call the work that is done, and all of it.
_COUNTS = (("done", "of"), ("done", "documents"), ("bytes", "totalBytes"))
_CLEAR = "\x1b[2K\r"

_WORK = {
    "context:retrieve": Wording("Indexing the novel", "正在建立索引"),
    "context:assemble": Wording("Assembling the prompt", "正在组装提示词"),
    "context:inspect": Wording("Assembling the prompt", "正在组装提示词"),
    "story:summarise": Wording("Summarising chapters", "正在撰写章节摘要"),
    "context:files:export": Wording("Exporting the conversation", "正在导出对话"),
    "context:files:import": Wording("Importing the conversation", "正在导入对话"),
    "ai:skill:run": Wording("Waiting for the AI", "正在等待 AI"),
    "ai:config:probe": Wording("Waiting for the AI", "正在等待 AI"),
    "initialize": Wording("Starting the daemon", "正在启动守护进程"),
}
_OTHER = Wording("Waiting for {}", "正在等待 {}")


def work_of(channel: str) -> Wording:
    """Say in the user's words what a channel is at."""
    return _WORK.get(channel) or _OTHER.format(channel)


class ProgressLine:
    """Draws the line from a thread of its own while the block runs, if there is a terminal."""

    def __init__(self, work: Wording) -> None:
        self._work = work.text(chinese=console_language() is Language.CHINESE)
        self._share: float | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self.wanted = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self.wanted:
            self._thread = threading.Thread(target=self._draw, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def report(self, value: Any) -> None:
        """Take in how far the work is, as a channel reports it."""
        fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        for done, of in _COUNTS:
            part, whole = fields.get(done), fields.get(of)
            if isinstance(part, int) and isinstance(whole, int) and whole > 0:
                self._share = min(1.0, part / whole)
                return

    def text(self, seconds: int) -> str:
        """Return the line after so many seconds."""
        if self._share is None:
            return f"{self._work} … {seconds} s"
        full = round(BAR * self._share)
        bar = "█" * full + "░" * (BAR - full)
        return f"{self._work} {bar} {self._share:4.0%} {seconds} s"

    def _draw(self) -> None:
        began = time.monotonic()
        if self._ended.wait(PATIENCE_SECONDS):
            return
        while not self._ended.is_set():
            seconds = int(time.monotonic() - began)
            sys.stderr.buffer.write(f"{_CLEAR}{self.text(seconds)}".encode("utf-8", "replace"))
            sys.stderr.flush()
            self._ended.wait(REDRAW_SECONDS)
        sys.stderr.buffer.write(_CLEAR.encode())
        sys.stderr.flush()
