"""`context.grep` — find the lines of a context file that match a pattern."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from creonowd.channels.conversation_files import LookAtContextFile, which_of
from creonowd.channels.redacting import log_redaction
from creonowd.channels.session import Session
from creonowd.context_files.files import GrepRequest
from creonowd.context_files.patterns import LONGEST
from creonowd.context_files.search import VisibleMatch, spell_cursor
from creonowd.model import Result
from creonowd.redaction import RedactionEvidence
from creonowd.rpc.channel import Channel


class GrepContextFile(LookAtContextFile):
    r"""A pattern in RE2's language, matched line by line.

    `\d`, `\w` and `\b` are ASCII, `\s` is any space, `\p{Han}` is a Han character. `cursor` goes
    on where an earlier search stopped.
    """

    pattern: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    max_results: Annotated[int, Meta(ge=1, le=200)] = 50
    context_lines: Annotated[int, Meta(ge=0, le=50)] = 0
    case_sensitive: bool = False
    cursor: Annotated[str, Meta(max_length=64)] | None = None


class GrepMatch(Result):
    """A line that matches, by its number from 1; `offset` is where `context.read` finds it."""

    line: int
    offset: int
    content: str
    before: list[str] | UnsetType = UNSET
    after: list[str] | UnsetType = UNSET


class GrepResult(Result):
    """The lines that match.

    `totalMatches` is how many there are in the whole file, or were found before time ran out
    (`timedOut`). If `truncated`, more match than are shown; `cursor` shows the next ones. A line
    that holds a secret counts if it matches beside the secret, unless the search is `raw`.
    """

    id: str
    total_matches: int
    matches: list[GrepMatch]
    truncated: bool
    timed_out: bool
    cursor: str | UnsetType = UNSET
    redaction_evidence: tuple[RedactionEvidence, ...]


async def grep_file(session: Session, params: GrepContextFile) -> GrepResult:
    """Find the lines of a context file that match a pattern."""
    which = await which_of(session, params)
    found = await session.files.grep(
        which,
        GrepRequest(
            params.pattern,
            params.case_sensitive,
            params.max_results,
            params.context_lines,
            params.cursor,
        ),
    )
    log_redaction(params.project_id, found.evidence)
    return GrepResult(
        id=params.id,
        total_matches=found.total,
        matches=[_match(match, params.context_lines) for match in found.matches],
        truncated=found.cursor is not None or not found.complete,
        timed_out=not found.complete,
        cursor=UNSET if found.cursor is None else spell_cursor(found.cursor),
        redaction_evidence=found.evidence,
    )


def _match(match: VisibleMatch, context_lines: int) -> GrepMatch:
    return GrepMatch(
        line=match.place.line,
        offset=match.place.offset,
        content=match.content,
        before=match.before if context_lines else UNSET,
        after=match.after if context_lines else UNSET,
    )


CHANNELS = (Channel("context.grep", grep_file),)
