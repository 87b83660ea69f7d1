"""What TorchAir does to an FX graph before it is compiled; `pipeline` runs the passes in its order, under its names."""
