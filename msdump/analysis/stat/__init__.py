"""Statistics of the tensors of one dump, and those of two dumps compared."""
