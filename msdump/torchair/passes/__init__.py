"""TorchAir's passes over an FX graph before compilation; `pipeline` runs them in its order, under its names."""
