"""Transports: stdio, sockets, WebSocket and memory. They move bytes and know no channel."""
