"""Stories about a real daemon, with pytest: fixtures `daemon`, `novel` and `page`, and a scripted AI.

Nothing is loaded before it is used: pytest imports the plugin in every environment that has
creonowd.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from creonowd.testing.async_client import RpcError
    from creonowd.testing.harness import (
        Harness,
        JoinedHarness,
        StoryNovel,
        StoryScript,
        StoryStep,
        StoryUsage,
        StoryVerdict,
        StoryViolation,
    )

__all__ = [
    "Harness",
    "JoinedHarness",
    "RpcError",
    "StoryNovel",
    "StoryScript",
    "StoryStep",
    "StoryUsage",
    "StoryVerdict",
    "StoryViolation",
]

_MODULES = ("async_client", "harness")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _MODULES:
            found = getattr(import_module(f"{__name__}.{module}"), name, None)
            if found is not None:
                return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
