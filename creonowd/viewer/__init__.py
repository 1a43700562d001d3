"""The context viewer: its page, and the responses that serve it."""
