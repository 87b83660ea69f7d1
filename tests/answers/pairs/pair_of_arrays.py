"""Activations of two programs were saved as .npy files under the same names; one program has its channels last."""

import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "another form of the same",
    "entry": "eager",
    "run": "python {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "layout": {
            "goes_wrong": "Nothing: channels are last in one program and second in the other.",
            "exit": 0,
            "says": ["agree"],
            "wants": "that both agree with axes turned",
        },
        "fault": {
            "goes_wrong": "Channels are last in one program, whose third layer has a leaky slope.",
            "operator": "relu3",
            "wants": "the third activation, relu3; all before it agrees with axes turned",
        },
    },
}

FAULT = sys.argv[1:] == ["faulty", "fault"]
IS_LAST = sys.argv[1] == "faulty" or sys.argv[1:] == ["healthy", "fault"]

rng = np.random.default_rng(0)
Path(sys.argv[1]).mkdir()


def save(name, x):
    np.save(Path(sys.argv[1], f"{name}.npy"), np.ascontiguousarray(x.transpose(0, 2, 3, 1)) if IS_LAST else x)


x = rng.standard_normal((2, 6, 9, 11), dtype=np.float32)
save("x", x)
for number in range(1, 5):
    weight = rng.standard_normal((6, 6), dtype=np.float32) / 2
    x = np.einsum("oi,bihw->bohw", weight, x).astype(np.float32)
    save(f"conv{number}", x)
    x = np.maximum(x, 0.1 * x if FAULT and number == 3 else 0)
    save(f"relu{number}", x)
