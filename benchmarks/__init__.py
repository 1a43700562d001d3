"""One module per `scripts/bench NAME`; `novel` and `traffic` are what several of them use.

Each measures ratios within one run and prints Markdown tables, for `docs/benchmarks.md`.
"""
