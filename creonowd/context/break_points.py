"""Where a provider could cache a prompt, and from how many tokens on it would.

Knows the providers' published minimums; talks to none.
"""

from creonowd.context.result import CacheBreakPoint
from creonowd.context.stable import Stable

USUAL_MINIMUM = 1024

_MINIMUMS = (
    ("haiku-3", 2048),
    ("3-haiku", 2048),
    ("3-5-haiku", 2048),
    ("haiku", 4096),
    ("opus-4-5", 4096),
    ("opus-4-6", 4096),
)


def minimum_tokens(model: str) -> int:
    """Tell from how many tokens on a model's provider caches; unknown ones the usual number."""
    name = model.lower()
    return next((minimum for part, minimum in _MINIMUMS if part in name), USUAL_MINIMUM)


def break_points(stable: Stable, model: str) -> list[CacheBreakPoint]:
    """List the places where the stable prefix may be cached: after Rules, and after all of it."""
    minimum = minimum_tokens(model)
    places = (
        ("rules", stable.rules_hash, stable.up_to_rules.tokens),
        ("systemPrompt", stable.hash, stable.prompt.tokens),
    )
    return [
        CacheBreakPoint(
            after=after,
            hash=hashed,
            tokens=tokens,
            minimum_tokens=minimum,
            reaches_minimum=tokens >= minimum,
        )
        for after, hashed, tokens in places
    ]
