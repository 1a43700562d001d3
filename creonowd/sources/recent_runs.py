"""What the last AI runs on this document came to, so that rewriting stays of one piece.

Knows records of runs; knows no provider.
"""

from collections.abc import Sequence

from creonowd.context.fragment import Fragment, Layer, Place
from creonowd.context.plan import Ask, Fetched, Need, Source
from creonowd.errors import WarningCode, warning_text
from creonowd.sources.outline import HeadingsOutline
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import RunRecord, Runs

SCORE = 1.0

# Behind every document: a run changes these, and must not shift what stands before them.
LAST = "\U0010ffff"


class RecentRuns:
    """Gives the summaries of the last runs, oldest first."""

    layer = Layer.RETRIEVED
    name = "recent_summary"
    need = Need.RECENT_SUMMARY
    unavailable = warning_text(WarningCode.RUNS_UNAVAILABLE)
    timeout_ms = None

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def fetch(self, ask: Ask) -> Fetched:
        """Give as many summaries as the skill asks for."""
        if ask.document_id is None or not ask.recent_summary:
            return Fetched()
        records = await self._runs.recent(ask.project_id, ask.document_id)
        return Fetched(fragments=tuple(map(_fragment, records[-ask.recent_summary :])))


def _fragment(run: RunRecord) -> Fragment:
    return Fragment(
        layer=Layer.RETRIEVED,
        source=RecentRuns.name,
        source_ref=f"runs/{run.number}",
        text=run.summary,
        place=Place(path=LAST, offset=run.number),
        score=SCORE,
    )


class SkillSources:
    """Gives the same sources to every project: each is told the project when it is asked."""

    def __init__(self, runs: Runs) -> None:
        self._sources = (HeadingsOutline(), RecentRuns(runs))

    def of(self, project: Project) -> Sequence[Source]:
        """Give the sources of a project for one assembly."""
        return self._sources
