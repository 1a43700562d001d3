"""What the engine keeps while the daemon lives: memory, gates, last prefixes, sources.

Holds; does nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from anyio import CapacityLimiter

from creonowd.channels.assembly_log import News
from creonowd.context.admission import Admission
from creonowd.context.assemble import Concurrency
from creonowd.context.plan import Source
from creonowd.context.system_prompt import PrefixMemory
from creonowd.context.text_tools import Memory
from creonowd.sources.batched_reads import SharedReads
from creonowd.workspace.projects import Project

READING = 8
COMPOSING = 2


class SourceProvider(Protocol):
    """Whoever has sources for a project."""

    def of(self, project: Project) -> Sequence[Source]:
        """Give the sources of a project for one assembly."""
        ...


def _lanes() -> Concurrency:
    return Concurrency(CapacityLimiter(READING), CapacityLimiter(COMPOSING))


@dataclass(frozen=True)
class Engine:
    """The engine of one daemon; `providers` are asked in their order."""

    providers: list[SourceProvider]
    admission: Admission = field(default_factory=Admission)
    memory: Memory = field(default_factory=Memory)
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)
    lookups: SharedReads[Any] = field(default_factory=SharedReads[Any])
    news: News = field(default_factory=News)
    lanes: Concurrency = field(default_factory=_lanes)

    def sources_of(self, project: Project) -> list[Source]:
        """Give all sources of a project."""
        return [source for provider in self.providers for source in provider.of(project)]
