"""Two programs, neither of them msdump's, saved what each layer of an encoder makes as .npy files of equal names."""

import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "trial: folders of arrays",
    "entry": "eager",
    "run": "python {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "flattened": {
            "goes_wrong": "Nothing: one program has a row for each word, the other a row for each sentence.",
            "exit": 0,
            "says": ["agree"],
            "wants": "that both agree, in another shape",
        },
        "turned": {
            "goes_wrong": "Nothing: one program has words first, the other sentences.",
            "exit": 0,
            "says": ["agree"],
            "wants": "that both agree with axes turned",
        },
        "half": {
            "goes_wrong": "Nothing: one program saves float16.",
            "exit": 0,
            "says": ["agree"],
            "wants": "that both agree, up to what float16 rounds",
        },
        "flattened_scale": {
            "goes_wrong": "One program has a row for each word, and its third attention is not scaled.",
            "operator": "layer2.attention",
            "wants": "the third attention; all before it agrees in another shape",
        },
        "turned_norm": {
            "goes_wrong": "One program has words first, and the norm of its fourth layer does not subtract the mean.",
            "operator": "layer3.norm",
            "wants": "the norm of the fourth layer; all before it agrees with axes turned",
        },
        "half_activation": {
            "goes_wrong": "One program saves float16, and its second activation is a ReLU in place of a SiLU.",
            "operator": "layer1.activation",
            "wants": "the second activation; all before it agrees",
        },
    },
}

FORM, _, REST = sys.argv[2].partition("_")
IS_NEW = sys.argv[1] == "faulty" or (sys.argv[1] == "healthy" and bool(REST))
FAULT = REST if sys.argv[1] == "faulty" else ""
BATCH, LENGTH, WIDTH = 3, 7, 24

rng = np.random.default_rng(0)
Path(sys.argv[1]).mkdir()


def save(name, x):
    if IS_NEW and FORM == "flattened":
        x = x.reshape(BATCH * LENGTH, -1)
    if IS_NEW and FORM == "turned":
        x = x.swapaxes(0, 1)
    np.save(
        Path(sys.argv[1], f"{name}.npy"), np.ascontiguousarray(x, np.float16 if IS_NEW and FORM == "half" else None)
    )


def drawn(*shape):
    return rng.standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5)


x = rng.standard_normal((BATCH, LENGTH, WIDTH), dtype=np.float32)
save("input", x)
for number in range(5):
    query, key, value, up, down = (drawn(*ends) for ends in 3 * [(WIDTH, WIDTH)] + [(WIDTH, 48), (48, WIDTH)])
    mean = 0 if FAULT == "norm" and number == 3 else x.mean(-1, keepdims=True)
    y = (x - mean) / np.sqrt(x.var(-1, keepdims=True) + np.float32(1e-5)) + np.float32(0.5)
    save(f"layer{number}.norm", y)
    root = 1 if FAULT == "scale" and number == 2 else WIDTH**0.5
    scores = np.exp((y @ query) @ (y @ key).swapaxes(1, 2) / np.float32(root))
    x = x + scores / scores.sum(-1, keepdims=True) @ (y @ value)
    save(f"layer{number}.attention", x)
    y = x @ up
    y = np.maximum(y, 0) if FAULT == "activation" and number == 1 else y / (1 + np.exp(-y))
    save(f"layer{number}.activation", y)
    x = x + y @ down
    save(f"layer{number}.output", x)
