"""A novel to measure with, and what is done with it."""
