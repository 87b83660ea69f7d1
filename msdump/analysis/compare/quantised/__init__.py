"""A quantised model against the model in floats: codes become numbers, what was folded is taken apart, and operators
are ranked by the error that each adds."""
