"""The context engine of a novel-writing IDE, as a local daemon."""

__version__ = "0.1.0"
