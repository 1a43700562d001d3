"""Where text comes from: files, characters, memory, retrieval, document, host."""
