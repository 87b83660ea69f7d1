"""The dumps that exports are tested with are what a viewer shows."""

from tests.analysis.exporting.conftest import golden_dump_folder, home, hostile_dump, moved_dump, nan_dump

__all__ = ["golden_dump_folder", "home", "hostile_dump", "moved_dump", "nan_dump"]
