"""The engine that assembles a prompt. `assemble` lists its steps.

It knows no disk, no network and no clock. Values go in, a value and its problems come out. Texts
and what was counted of them are kept in `text_tools.Memory`; small values, names and sentences are
kept beside the functions that find them.
"""
