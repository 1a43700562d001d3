"""The use cases: assemble a prompt, run a skill, build a turn. Knows no JSON and no socket."""
