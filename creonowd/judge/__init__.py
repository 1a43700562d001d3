"""Check whether an output keeps the project's constraints and terms: by rules, else by a model.

Knows constraints and terms as texts; how they got into a prompt is decided in `context`.
"""
