"""Where TorchAir keeps its configuration classes."""
