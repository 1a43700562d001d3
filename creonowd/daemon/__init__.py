"""The daemon process: its start and end, and the services put together."""
