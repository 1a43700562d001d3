"""Many clients at once: what they send, what they are owed, and what the daemon uses meanwhile."""
