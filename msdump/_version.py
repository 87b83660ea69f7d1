"""The version of msdump, which every module may read."""

__version__ = "0.1.0"
