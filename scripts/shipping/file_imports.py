"""The first thing that the folder's program runs: modules are files, so Python's own finder finds them.

PyInstaller's finder looks into its archive first. Here that is empty, and looking took a twentieth
of a start.
"""

import sys

FINDER = "PyiFrozenFinder"

sys.path_hooks[:] = [
    hook for hook in sys.path_hooks if FINDER not in getattr(hook, "__qualname__", "")
]
sys.path_importer_cache.clear()
