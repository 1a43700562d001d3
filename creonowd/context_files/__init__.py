"""Context files: store, list, read, tail, grep, archive."""
