"""`import msprobe` in scripts that `msdump run --as msprobe` runs: the part of mindstudio-probe that dumps PyTorch."""
