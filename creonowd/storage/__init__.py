"""How the disk is touched safely: atomic writes, locks, journals and folders without links."""
