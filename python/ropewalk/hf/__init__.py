"""Transformers models: their own rotations replaced by our operator."""

from .patch import patch, unpatch

__all__ = ["patch", "unpatch"]
