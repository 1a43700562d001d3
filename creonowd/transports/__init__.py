"""Bytes in, bytes out. Knows no method."""
