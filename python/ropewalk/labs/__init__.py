"""Experiments on the user's own GPU: what a benchmark can get wrong, and why kernels have steps."""
