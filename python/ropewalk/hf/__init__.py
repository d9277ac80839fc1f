"""Transformers models: their own rotations replaced by our operator."""

from .patching import patch, unpatch

__all__ = ["patch", "unpatch"]
