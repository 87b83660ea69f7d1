"""What TorchAir does to an FX graph before it is compiled: one pass per file, in its order and under its names."""
