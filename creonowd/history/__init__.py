"""The history of a conversation: its rounds, tool results and summaries, and the turns built on it.

Knows messages and budgets; the wire and the models that answer are reached from `engine`.
"""
