"""What skills may ask for beside files and passages: the outline and what recent runs came to."""

from collections.abc import Sequence

from creonowd.context.plan import Source
from creonowd.sources.headings_outline import HeadingsOutline
from creonowd.sources.recent_runs import RecentRuns
from creonowd.workspace.projects import Project
from creonowd.workspace.runs import Runs


class SkillSources:
    """Gives the same sources to every project: each is told the project when it is asked."""

    def __init__(self, runs: Runs) -> None:
        self._sources = (HeadingsOutline(), RecentRuns(runs))

    def of(self, project: Project) -> Sequence[Source]:
        """Give the sources of a project for one assembly."""
        return self._sources
