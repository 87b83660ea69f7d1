"""Run one of the models on the test pictures, with the dump that an acl.json asks for.

python infer.py digits.onnx [acl.json]
"""

import contextlib
import sys

import msdump.acl
import numpy as np


def main():
    pictures, labels = np.load("pictures.npy"), np.load("labels.npy")
    dump = msdump.acl.dump(sys.argv[2]) if len(sys.argv) > 2 else None
    with dump or contextlib.nullcontext():
        model = msdump.acl.load(sys.argv[1])
        found = model(pictures)["probabilities"].argmax(axis=1)
    print(f"{model.name}: accuracy {np.mean(found == labels):.3f}")
    if dump is not None:
        report = dump.report()
        print(f"{report.files} files, {report.bytes_written} bytes in {report.path}")


if __name__ == "__main__":
    main()
