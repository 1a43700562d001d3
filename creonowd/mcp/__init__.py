"""What an agent reaches by MCP: the context files, the manuscript and the story of one project.

A process of its own and a client of the daemon, which never imports this package. It knows no file:
everything comes from channels, with a grant that allows just these.
"""
