"""Rounds, history summary, context builder."""
