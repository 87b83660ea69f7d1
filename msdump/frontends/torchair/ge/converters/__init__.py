"""Converters: one short function for each ATen operator, in files by family."""
