"""Secrets out, prose untouched."""
