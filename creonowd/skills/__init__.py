"""SKILL.md and what it declares; the built-in skills."""
