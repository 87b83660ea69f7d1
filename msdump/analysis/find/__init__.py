"""Looking for something in one dump: the first NaN, an operator, a source line, what to dump next."""
