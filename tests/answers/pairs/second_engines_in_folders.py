"""Two engines of one's own, neither of them msdump's, saved what their layers make while they told three words more."""

import json
import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "second trial: folders of two engines",
    "entry": "eager",
    "run": "python {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "rotary": {
            "goes_wrong": "One engine turns neighbours, the other halves; the weights are not reordered for that.",
            "operator": "layers.0.rotated",
            "wants": "the rotated query, or key, of the first layer",
        },
        "position": {
            "goes_wrong": "The first word that is told has the position of the last word that was given.",
            "operator": "layers.0.rotated",
            "step": 1,
            "wants": "the rotated query, or key, of the first layer in step 1; step 0 agrees",
        },
        "stale": {
            "goes_wrong": "The cache of values of the second layer is read before the new value is in it.",
            "operator": "layers.1.context",
            "step": 1,
            "wants": "the context of the second layer in step 1; step 0 agrees",
        },
        "groups": {
            "goes_wrong": "The heads of keys and values are repeated in turn, not each beside itself.",
            "operator": "layers.0.scores",
            "wants": "the scores of the first layer; queries and keys agree",
        },
        "cap": {
            "goes_wrong": "The scores of the third layer are not capped by a tangent.",
            "operator": "layers.2.scores",
            "wants": "the scores of the third layer",
        },
        "window": {
            "goes_wrong": "The window of the second layer is one word too wide.",
            "operator": "layers.1.weights",
            "wants": "the attention weights of the second layer; its scores agree",
        },
        "gain": {
            "goes_wrong": "The gain of the second norm of the third layer lacks the 1 that is added to it.",
            "operator": "layers.2.norm2",
            "wants": "the second norm of the third layer",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
FORM = {"rotary": "npz", "position": "npz", "stale": "heads", "groups": "npz", "cap": "safetensors"}.get(
    sys.argv[2], "heads"
)
FORM = "npy" if sys.argv[1] == "golden" else FORM
WIDTH, HEADS, GROUPS, HEAD, LAYERS, GIVEN, STEPS, WINDOW, WORDS = 24, 4, 2, 8, 4, 6, 4, 4, 19
TOTAL = GIVEN + STEPS - 1

rng = np.random.default_rng(61)
saved = {}


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)


def write(step):
    """One folder, or one file, for each step."""
    folder = Path(sys.argv[1], f"step_{step}")
    folder.mkdir(parents=True)
    if FORM == "npz":
        np.savez(folder / "tensors.npz", **saved)
    elif FORM == "safetensors":
        header, data = {}, b""
        for name, x in saved.items():
            bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
            part = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()
            ends = [len(data), len(data) + len(part)]
            header[name] = {"dtype": "BF16", "shape": list(x.shape), "data_offsets": ends}
            data += part
        text = json.dumps(header).encode()
        (folder / "tensors.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    else:
        for name, x in saved.items():
            np.save(folder / f"{name}.npy", x)
    saved.clear()


def keep(name, x):
    """Save a tensor; one engine has the heads in front of the words."""
    is_turned = FORM == "heads" and x.ndim == 3 and not name.endswith(("scores", "weights"))
    saved[name] = np.ascontiguousarray(x.swapaxes(0, 1) if is_turned else x)
    return x


def norm(x, gain, one=1):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(1e-6)) * (one + gain)


def rotated(x, positions):
    angles = positions[:, None, None] / 100.0 ** (np.arange(HEAD // 2) * 2 / HEAD)
    cosine, sine = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    if FAULT == "rotary":
        first, second = x[..., ::2], x[..., 1::2]
        both = np.stack([first * cosine - second * sine, second * cosine + first * sine], -1)
        return both.reshape(x.shape)
    first, second = x[..., : HEAD // 2], x[..., HEAD // 2 :]
    return np.concatenate([first * cosine - second * sine, second * cosine + first * sine], -1)


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def repeated(x):
    """For each head of the queries the one of the keys, or values, that it shares."""
    return np.tile(x, (1, HEADS // GROUPS, 1)) if FAULT == "groups" else np.repeat(x, HEADS // GROUPS, 1)


def layer(number, x, positions):
    name, own = f"layers.{number}", weights[number]
    h = keep(f"{name}.norm1", norm(x, own["gain1"]))
    query = keep(f"{name}.query", (h @ own["query"]).reshape(-1, HEADS, HEAD))
    key = keep(f"{name}.key", (h @ own["key"]).reshape(-1, GROUPS, HEAD))
    value = keep(f"{name}.value", (h @ own["value"]).reshape(-1, GROUPS, HEAD))
    turning = positions - (FAULT == "position" and positions[0] == GIVEN)
    query = keep(f"{name}.rotated_query", rotated(query, turning))
    keys[number, positions] = keep(f"{name}.rotated_key", rotated(key, turning))
    end = positions[-1] + 1
    before = values[number, :end].copy()
    values[number, positions] = value
    used = before if FAULT == "stale" and number == 1 and len(positions) == 1 else values[number, :end]
    scores = np.einsum("qhd,khd->hqk", query, repeated(keys[number, :end])) / np.float32(HEAD**0.5)
    scores = scores if FAULT == "cap" and number == 2 else np.float32(3) * np.tanh(scores / np.float32(3))
    keep(f"{name}.scores", scores)
    distance = positions[:, None] - np.arange(end)
    window = WINDOW + (FAULT == "window" and number == 1) if number % 2 else TOTAL
    shares = softmax(np.where((distance >= 0) & (distance < window), scores, np.float32(-1e9)))
    keep(f"{name}.weights", shares)
    context = keep(f"{name}.context", np.einsum("hqk,khd->qhd", shares, repeated(used)))
    x = keep(f"{name}.attention", x + context.reshape(len(x), -1) @ own["out"])
    h = keep(f"{name}.norm2", norm(x, own["gain2"], 0 if FAULT == "gain" and number == 2 else 1))
    gate = h @ own["gate"]
    inner = keep(f"{name}.inner", gate / (1 + np.exp(-gate)) * (h @ own["up"]))
    return keep(f"{name}.output", x + inner @ own["down"])


table, weights = drawn(WORDS, WIDTH, factor=WORDS**0.5), []
for _ in range(LAYERS):
    shapes = {"query": (WIDTH, HEADS * HEAD), "key": (WIDTH, GROUPS * HEAD), "value": (WIDTH, GROUPS * HEAD)}
    shapes |= {"out": (HEADS * HEAD, WIDTH), "gate": (WIDTH, 40), "up": (WIDTH, 40), "down": (40, WIDTH)}
    factors = {"query": 1.8, "key": 1.8}
    weights.append({name: drawn(*shape, factor=factors.get(name, 1)) for name, shape in shapes.items()})
    weights[-1] |= {"gain1": drawn(WIDTH), "gain2": drawn(WIDTH)}
text = rng.integers(0, WORDS, TOTAL)
keys, values = np.zeros((2, LAYERS, TOTAL, GROUPS, HEAD), np.float32)
for step in range(STEPS):
    positions = np.arange(GIVEN) if step == 0 else np.array([GIVEN + step - 1])
    x = keep("embedding", table[text[positions]])
    for number in range(LAYERS):
        x = layer(number, x, positions)
    logits = keep("logits", norm(x, np.float32(0)) @ table.T)
    print(*logits[-1].tolist(), sep="\n")
    write(step)
