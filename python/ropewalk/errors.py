"""Exceptions of the package."""


class RopewalkError(Exception):
    """Base of the package's exceptions."""


class PlanError(RopewalkError, ValueError):
    """A plan or a model configuration that the core refuses; the message names the key."""


class UnsupportedError(RopewalkError, RuntimeError):
    """The operators are not available for this device or this version of PyTorch."""
