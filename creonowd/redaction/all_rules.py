"""All rules, the most specific first: where two overlap, the first one names the evidence."""

from collections.abc import Sequence
from pathlib import PurePath

from creonowd.redaction import (
    absolute_paths,
    access_codes,
    formats,
    labels,
    layouts,
    mentions,
    passwords,
    personal,
    vendor_keys,
)
from creonowd.redaction.personal import home_rules, secret_rules
from creonowd.redaction.rules import RedactionRule

RULES = (
    *vendor_keys.RULES,
    *formats.RULES,
    *formats.HEADER_RULES,
    *labels.RULES,
    *formats.COMMAND_RULES,
    *passwords.RULES,
    *access_codes.RULES,
    *layouts.RULES,
    *mentions.RULES,
    *absolute_paths.RULES,
)


def rules_for(
    home: PurePath | None, secrets: Sequence[str], *, sensitive: bool
) -> list[RedactionRule]:
    """List the rules for one user."""
    wider = personal.RULES if sensitive else ()
    return [*RULES, *secret_rules(secrets), *home_rules(home), *wider]
