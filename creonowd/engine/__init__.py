"""The use cases: assemble a prompt, run a skill, build a turn. It reads no JSON and opens no socket."""
