"""Run the daemon of this or another checkout and look at it from outside, over the wire.

Depends on the contract, on `python -m creonowd` and on nothing else of the package, so that it
works on both sides of any change of layout.
"""
