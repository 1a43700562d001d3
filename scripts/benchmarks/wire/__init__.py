"""What `scripts/bench rpc` measures with: one light client, and the servers that it asks."""
