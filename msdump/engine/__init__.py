"""A configuration becomes dumpers and writers, for graphs, for models and for recorders."""
