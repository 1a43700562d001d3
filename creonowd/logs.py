"""JSON lines in `<userData>/logs/main.log`, redacted in the last processor."""
