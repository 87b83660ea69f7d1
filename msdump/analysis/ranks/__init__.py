"""Ranks of a job: a table part for each rank and step, queries over all of them, and checks of equal tensors."""
