"""Everything put together."""
