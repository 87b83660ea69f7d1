"""Pack a real MindSpore dump of `lenet.py` into `reference.npz`: each distinct array once, and a name index.

Usage: python make_reference.py DUMP_DIR   (the folder that holds rank_0; made with MindSpore 2.0.0 on CPU)
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import numpy as np


def main(dump: Path) -> None:
    arrays: dict[str, np.ndarray] = {}
    index: dict[str, str] = {}
    for path in sorted(dump.glob("rank_0/**/*.npy")):
        array = np.load(path)
        digest = hashlib.md5(repr((array.shape, array.dtype)).encode() + array.tobytes()).hexdigest()
        arrays[digest] = array
        index[str(path.relative_to(dump))] = digest
    packed = {**arrays, "index": np.frombuffer(json.dumps(index).encode(), np.uint8)}
    np.savez_compressed(Path(__file__).with_name("reference.npz"), **packed)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
