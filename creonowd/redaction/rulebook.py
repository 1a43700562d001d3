"""Every rule, the most telling first: where two overlap, the first names the evidence.

Knows the order; what the rules are stands in the modules it lists.
"""

from collections.abc import Sequence
from pathlib import PurePath

from creonowd.redaction import (
    ai_keys,
    cloud_keys,
    commands,
    envelopes,
    headers,
    labels,
    paths,
    personal,
    platform_tokens,
)
from creonowd.redaction.own import home_rules, secret_rules
from creonowd.redaction.rules import Rule

RULES = (
    *ai_keys.RULES,
    *platform_tokens.RULES,
    *cloud_keys.RULES,
    *envelopes.RULES,
    *headers.RULES,
    *labels.RULES,
    *commands.RULES,
    *paths.RULES,
)


def rules_for(home: PurePath | None, secrets: Sequence[str], *, sensitive: bool) -> list[Rule]:
    """Put together the rules for one user."""
    wider = personal.RULES if sensitive else ()
    return [*RULES, *secret_rules(secrets), *home_rules(home), *wider]
