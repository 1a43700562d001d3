"""Exact token counts with the tables that come with the package."""
