"""Converting dump files to npy, bin and other formats."""

from msdump.analysis.convert.files import ConvertOptions, convert_files, dump_sources

__all__ = ["ConvertOptions", "convert_files", "dump_sources"]
