"""What a project keeps on disk or has open in the editor.

It knows files, versions and who has what open; it knows no channel, and what a text means to an
assembly is decided above it.
"""
