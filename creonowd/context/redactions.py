"""Adding up redaction evidence. Knows patterns by name only."""

from collections import Counter
from collections.abc import Iterable

from creonowd.redaction import RedactionEvidence


def merged(evidence: Iterable[RedactionEvidence]) -> tuple[RedactionEvidence, ...]:
    """Add up what the same pattern found in the same source, sorted by source and pattern."""
    sums = Counter[tuple[str, str]]()
    for found in evidence:
        sums[found.source_ref, found.pattern_id] += found.match_count
    return tuple(
        RedactionEvidence(pattern_id=pattern, source_ref=ref, match_count=count)
        for (ref, pattern), count in sorted(sums.items())
    )
