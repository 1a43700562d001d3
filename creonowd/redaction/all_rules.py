"""All rules, the most specific first: where two overlap, the first one names the evidence."""

from collections.abc import Sequence
from pathlib import PurePath

from creonowd.redaction import (
    absolute_paths,
    access_codes,
    commands,
    entries,
    formats,
    labels,
    layouts,
    mentions,
    passwords,
    personal,
    recovery_phrases,
    vendor_keys,
)
from creonowd.redaction.personal import home_rules, secret_rules
from creonowd.redaction.rules import RedactionRule

_LABEL_RULES = (
    *entries.CHANGE_RULES,
    *labels.RULES,
    *labels.PAIR_RULES,
    *passwords.RULES,
    *labels.FIELD_RULES,
    *access_codes.RULES,
    *layouts.RULES,
    *entries.RULES,
    *mentions.RULES,
)
RULES = (
    *vendor_keys.RULES,
    *recovery_phrases.RULES,
    *formats.RULES,
    *entries.CHANGE_RULES,
    *labels.RULES,
    *commands.RULES,
    *labels.PAIR_RULES,
    *passwords.RULES,
    *labels.FIELD_RULES,
    *access_codes.RULES,
    *layouts.RULES,
    *entries.RULES,
    *mentions.RULES,
    *mentions.SPELLING_RULES,
    labels.broken_label_rule(_LABEL_RULES),
    *absolute_paths.RULES,
)


def rules_for(
    home: PurePath | None, secrets: Sequence[str], *, sensitive: bool
) -> list[RedactionRule]:
    """List the rules for one user."""
    wider = personal.RULES if sensitive else ()
    return [*RULES, *secret_rules(secrets), *home_rules(home), *wider]
