"""What TORCH_COMPILE_DEBUG=1 leaves behind: every graph of every compilation, and a log."""
