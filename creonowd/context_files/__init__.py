"""Context files: what is too big for a conversation, kept as files that a model can read and search.

`files.ContextFiles` is the way in. The package knows no channel and no wire shape beyond refs and
recipes, and does not decide who may read raw.
"""
