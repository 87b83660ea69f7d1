"""A dump as a whole: what it holds, how each tensor fares, what is wrong."""
