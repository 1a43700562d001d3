"""How near each entity is to the current document, for when not all of them can stay.

Looks at the whole document, never at the cursor, and lets only the *set* of mentioned entities
out: as long as that stays the same, so does the stable prefix.
"""

from collections.abc import Sequence

from msgspec import field

from creonowd.context.fragment import Fragment
from creonowd.context.mentions import Mentions
from creonowd.model import Model


class Ranking(Model):
    """Which entities are mentioned, and how many of those each entity's own text names.

    Entities are told apart by `source_ref`.
    """

    mentioned: frozenset[str] = frozenset()
    shared: dict[str, int] = field(default_factory=dict[str, int])

    def key(self, entity: Fragment) -> tuple[object, ...]:
        """Sort entities, the most relevant first."""
        name = entity.names[0] if entity.names else entity.source_ref
        mentioned = entity.source_ref in self.mentioned
        shared = self.shared.get(entity.source_ref, 0)
        return (not mentioned, -entity.priority, -shared, name, entity.source_ref, entity.text)


def mentioned_entities(
    entities: Sequence[Fragment], document: str, mentions: Mentions
) -> frozenset[str]:
    """Find out which entities a document mentions."""
    found = mentions.find((name for entity in entities for name in entity.names), document)
    return frozenset(e.source_ref for e in entities if found.intersection(e.names))


def rank(entities: Sequence[Fragment], mentioned: frozenset[str], mentions: Mentions) -> Ranking:
    """Find out which entities belong with the mentioned ones."""
    near = [entity for entity in entities if entity.source_ref in mentioned]
    names = tuple(name for entity in near for name in entity.names)
    shared: dict[str, int] = {}
    for entity in entities:
        found = mentions.find(names, entity.text)
        others = (other for other in near if other.source_ref != entity.source_ref)
        shared[entity.source_ref] = sum(bool(found.intersection(o.names)) for o in others)
    return Ranking(mentioned=mentioned, shared=shared)
