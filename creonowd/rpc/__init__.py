"""JSON-RPC 2.0. Knows messages; knows no feature and no socket."""
