"""msdump shows every tensor that a model computes."""

__version__ = "0.1.0"
