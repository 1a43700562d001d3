"""What can be asked: one module per family, a typed request and a thin handler each."""
