"""Everything put together. Knows every part and does the work of none."""
