"""Where text comes from: files, entities, passages, documents, hosts.

A source makes fragments; it counts, trims, redacts and renders nothing.
"""
