"""The engine: plan, gather, redact, count, trim, render, hash. No disk, no network, no clock.

`assemble` is the table of contents. Values in, a value and its problems out; what was computed
from the same text before is remembered in `Memory`, by content.
"""
