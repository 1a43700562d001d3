"""Summaries of the last AI runs on a document, so that the next run continues in their line."""

from collections.abc import Sequence

from creonowd.context.fragment import Fragment, Layer, Place
from creonowd.context.plan import Ask, Fetched, Need, Source
from creonowd.errors import WarningCode, warning_text
from creonowd.sources.outline import HeadingsSource
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import RunRecord, Runs

SCORE = 1.0

# After every document: each run adds a summary, which must not shift the passages before it.
LAST = "\U0010ffff"


class RecentRunsSource:
    """The summaries of the last runs, oldest first."""

    layer = Layer.RETRIEVED
    name = "recent_summary"
    need = Need.RECENT_SUMMARY
    unavailable = warning_text(WarningCode.RUNS_UNAVAILABLE)
    timeout_ms = None

    def __init__(self, runs: Runs) -> None:
        self._runs = runs

    async def fetch(self, ask: Ask) -> Fetched:
        """Return as many summaries as the skill asks for."""
        if ask.document_id is None or not ask.recent_summary:
            return Fetched()
        records = await self._runs.recent(ask.project_id, ask.document_id)
        return Fetched(fragments=tuple(map(_fragment, records[-ask.recent_summary :])))


def _fragment(run: RunRecord) -> Fragment:
    return Fragment(
        layer=Layer.RETRIEVED,
        source=RecentRunsSource.name,
        source_ref=f"runs/{run.number}",
        text=run.summary,
        place=Place(path=LAST, offset=run.number),
        score=SCORE,
    )


class DocumentSources:
    """The sources about the current document: its headings and its last runs."""

    def __init__(self, runs: Runs) -> None:
        self._sources = (HeadingsSource(), RecentRunsSource(runs))

    def of(self, project: Project) -> Sequence[Source]:
        """Return the sources for one assembly; they are the same for every project."""
        del project
        return self._sources
