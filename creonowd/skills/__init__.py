"""SKILL.md and its `context_rules`; the built-in skills."""
