"""The ``rotary_pos_emb`` layer of transformers, by ropewalk's operator."""

from . import layers

__all__ = ["layers"]
