"""Passages of the author's own documents, found by what they say."""
