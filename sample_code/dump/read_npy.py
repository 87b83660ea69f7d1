"""Read data files of a dump and print what is in them.

python read_npy.py --npy_files FILE [FILE ...]
"""

import argparse
from pathlib import Path

import numpy as np


def main():
    parser = argparse.ArgumentParser(description="Print shape, dtype and range of .npy files.")
    parser.add_argument("--npy_files", nargs="+", required=True, help="files to read")
    for file in parser.parse_args().npy_files:
        tensor = np.load(file)
        shown = f"{Path(file).name}: shape {tensor.shape}, dtype {tensor.dtype}"
        if tensor.size:
            shown += f", min {tensor.min():.6g}, max {tensor.max():.6g}, mean {tensor.mean(dtype=np.float64):.6g}"
        print(shown)


if __name__ == "__main__":
    main()
