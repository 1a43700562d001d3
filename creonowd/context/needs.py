"""What a skill may ask for, and what asks for what. Knows no source."""

from enum import StrEnum

from creonowd.model import Model

MAX_SURROUNDING = 20_000
MAX_RECENT_SUMMARY = 10


class ContextRules(Model):
    """A skill's declaration of the context it needs; everything is off unless asked for."""

    surrounding: int = 0
    user_preferences: bool = False
    style_guide: bool = False
    characters: bool = False
    outline: bool = False
    recent_summary: int = 0
    knowledge_graph: bool = False
    retrieval: bool = False


class Need(StrEnum):
    """The key of `context_rules` that a source hangs on; `always` hangs on none.

    `evidence` hangs on either of two: entities that are spoken of are characters to one skill and
    part of the graph to another.
    """

    ALWAYS = "always"
    SURROUNDING = "surrounding"
    USER_PREFERENCES = "user_preferences"
    STYLE_GUIDE = "style_guide"
    CHARACTERS = "characters"
    OUTLINE = "outline"
    RECENT_SUMMARY = "recent_summary"
    KNOWLEDGE_GRAPH = "knowledge_graph"
    RETRIEVAL = "retrieval"
    EVIDENCE = "evidence"


class Summary(StrEnum):
    """What a skill may rely on and only a host can give: it takes reading the whole novel."""

    FULL_TEXT = "full_text"
    RELATIONS = "relations"


_READ_THE_DOCUMENT = (
    Need.SURROUNDING,
    Need.CHARACTERS,
    Need.OUTLINE,
    Need.KNOWLEDGE_GRAPH,
    Need.RETRIEVAL,
)


def wants(rules: ContextRules | None, need: Need) -> bool:
    """Tell whether a skill asks for something; the general profile (None) asks for everything."""
    if rules is None or need is Need.ALWAYS:
        return True
    if need is Need.EVIDENCE:
        return rules.characters or rules.knowledge_graph
    return bool(getattr(rules, need.value))


def wants_document(rules: ContextRules | None) -> bool:
    """Tell whether anything that a skill asks for depends on the document's text."""
    return any(wants(rules, need) for need in _READ_THE_DOCUMENT)
