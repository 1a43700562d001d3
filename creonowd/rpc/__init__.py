"""JSON-RPC 2.0: framing, messages, connections, requests, rights and the contract.

Holds no feature and no transport. It reads no file, opens no socket and asks no clock but the one
it is given; `lint-imports` checks that.
"""
