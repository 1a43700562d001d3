"""AI back ends: fake, OpenAI-compatible, Anthropic; and the judge."""
