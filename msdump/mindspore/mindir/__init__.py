"""MINDIR files: programs with their weights, as `export` writes them and `load` reads them."""
