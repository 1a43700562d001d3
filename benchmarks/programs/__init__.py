"""Programs that benchmarks start: echo servers for `rpc`, and the contestants of `peers`."""
