"""Figures: ``results`` draws measured ones from result files, ``computed`` those that need none."""
