"""Entities that enter a prompt only when someone speaks of them: a source of Retrieved.

They never enter the stable layers: whether they are mentioned changes with every page, and the
prefix must not. `mentioned` ones come when the text around the author or the author's own words
name them, `manual` ones only for the author's own words.
"""

from creonowd.context.fragment import Fragment, Layer
from creonowd.context.plan import Ask, Document, Fetched, Need
from creonowd.errors import WarningCode, warning_text
from creonowd.sources.cast import Cast

# Beginning on a coarse grid, the stretch loses names in steps and not with every letter.
STEP = 2000
STEPS_BACK = 2
AHEAD = 1000


class MentionedSource:
    """The entities of one project that are spoken of."""

    layer = Layer.RETRIEVED
    name = "mentioned"
    need = Need.EVIDENCE
    unavailable = warning_text(WarningCode.CHARACTERS_UNAVAILABLE)
    timeout_ms: int | None = None

    def __init__(self, cast: Cast) -> None:
        self._cast = cast

    async def fetch(self, ask: Ask) -> Fetched:
        """Give the entities that are named near the author, or by the author."""
        entities = await self._cast.everyone()
        near = f"{_near(ask.document)}\n{ask.wish}"
        found = [
            *self._named(entities.mentioned, near),
            *self._named(entities.manual, ask.wish),
        ]
        return Fetched(fragments=tuple(found))

    def _named(self, entities: tuple[Fragment, ...], text: str) -> list[Fragment]:
        found = self._cast.find((name for entity in entities for name in entity.names), text)
        return [entity for entity in entities if found.intersection(entity.names)]


def _near(document: Document | None) -> str:
    if document is None:
        return ""
    here = document.here
    start = max(0, (here.start // STEP - STEPS_BACK) * STEP)
    return document.text[start : here.end + AHEAD]
