"""The index of the author's own documents: passages by what they say. Knows no source."""
