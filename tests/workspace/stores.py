"""Stores for tests, made as the daemon makes them."""

from creonowd.clock import SystemClock
from creonowd.redaction import Redactor
from creonowd.workspace.constraints import Constraints
from creonowd.workspace.creonow_tree import Tree


def a_store() -> Constraints:
    """Make a store of constraints that knows nothing of any other."""
    clock = SystemClock()
    return Constraints(Tree(clock), clock, Redactor())
