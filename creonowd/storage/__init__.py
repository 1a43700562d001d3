"""How the disk is touched safely: atomic writes, locks, journals and folders without links.

It handles bytes, files and folders and knows nothing of what they mean. No error that it raises
holds an absolute path.
"""
