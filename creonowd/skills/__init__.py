"""SKILL.md files: what one declares, and where the skills of a user and a project are found.

Knows files and their form; what a skill's context rules select is decided in `context`.
"""
