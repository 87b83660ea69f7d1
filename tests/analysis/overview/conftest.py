"""The dumps that exports are tested with."""

from tests.analysis.exporting.conftest import home, nan_dump

__all__ = ["home", "nan_dump"]
