"""The engine that assembles a prompt. `assemble` lists its steps.

It knows no disk, no network and no clock. Values go in, a value and its problems come out; what
was computed from the same text before is kept in `text_tools.Memory`, by content.
"""
