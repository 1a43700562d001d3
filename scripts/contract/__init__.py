"""The contract for other languages, written from the OpenRPC document."""
