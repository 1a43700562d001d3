"""What tests, end-to-end stories and benchmarks share: clients, daemons, projects, scores.

Imports `creonowd` and nothing of `tests`, `e2e` or `benchmarks`.
"""
