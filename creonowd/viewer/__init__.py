"""The context viewer page and what serves it."""
