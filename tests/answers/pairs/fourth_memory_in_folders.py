"""A reader with a memory of what it read before runs in two engines, neither of them msdump's; both save arrays."""

import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "fourth trial: folders of a reader with a memory",
    "entry": "eager",
    "run": "python {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "shift": {
            "goes_wrong": "The scores by distance of the second layer are not shifted, row by row.",
            "operator": "layers.1.position",
            "wants": "the scores by distance of the second layer; its scores by content agree",
        },
        "memory": {
            "goes_wrong": "The memory of a layer is what it gave, not what went into it.",
            "operator": "layers.0.key",
            "step": 1,
            "wants": "the keys, or the values, of the first layer in step 1; step 0 agrees",
        },
        "biases": {
            "goes_wrong": "The two biases of the query, for content and distance, have changed places in layer 2.",
            "operator": "layers.2.content",
            "wants": "the scores by content of the third layer; query and key agree",
        },
        "causal": {
            "goes_wrong": "The mask counts from the beginning of the memory, as if there were none.",
            "operator": "layers.0.shares",
            "step": 1,
            "wants": "the attention shares of the first layer in step 1; step 0 agrees",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_GOLDEN = sys.argv[1] == "golden"
WORDS, WIDTH, HEADS, HEAD, INNER, LAYERS, LENGTH, REMEMBERED, STEPS = 19, 12, 3, 4, 20, 3, 5, 5, 3

rng = np.random.default_rng(409)
saved = {}


def drawn(*shape, factor=1.0):
    return (factor * rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)


def keep(name, x):
    """Save an array. The second engine has the words in front of the heads."""
    is_turned = not IS_GOLDEN and x.ndim == 3 and not name.endswith(("content", "position", "shares"))
    saved[name] = np.ascontiguousarray(x.swapaxes(0, 1) if is_turned else x)
    return x


def write(step):
    folder = Path(sys.argv[1], f"step_{step}")
    folder.mkdir(parents=True)
    if IS_GOLDEN:
        for name, x in saved.items():
            np.save(folder / f"{name}.npy", x)
    else:
        np.savez(folder / "arrays.npz", **saved)
    saved.clear()


def heads(x):
    return x.reshape(len(x), HEADS, HEAD).swapaxes(0, 1)


def norm(x, gain, shift):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5)) * gain + shift


def waves(distances):
    angles = distances[:, None] / 1000.0 ** (np.arange(0, WIDTH, 2) / WIDTH)
    return np.concatenate([np.sin(angles), np.cos(angles)], -1).astype(np.float32)


def by_distance(query, own, total, is_shifted):
    """Scores by distance. The first engine picks a row for each pair, the second one shifts whole rows."""
    if IS_GOLDEN:
        distances = (total - LENGTH + np.arange(LENGTH))[:, None] - np.arange(total)
        rows = heads(waves(np.arange(-LENGTH, total + LENGTH)) @ own["distance"])
        return np.einsum("hqd,hqkd->hqk", query, rows[:, distances + LENGTH])
    rows = heads(waves(np.arange(total)[::-1]) @ own["distance"])
    scores = np.einsum("hqd,hkd->hqk", query, rows)
    if not is_shifted:
        return scores
    padded = np.concatenate([np.zeros((HEADS, LENGTH, 1), np.float32), scores], -1)
    return padded.reshape(HEADS, total + 1, LENGTH)[:, 1:].reshape(HEADS, LENGTH, total)


def layer(number, x, memory):
    name, own = f"layers.{number}", weights[number]
    joined = np.concatenate([memory, x])
    total = len(joined)
    query = keep(f"{name}.query", heads(x @ own["query"]))
    key = keep(f"{name}.key", heads(joined @ own["key"]))
    value = keep(f"{name}.value", heads(joined @ own["value"]))
    near, far = own["near"][:, None], own["far"][:, None]
    if FAULT == "biases" and number == 2:
        near, far = far, near
    is_seen = np.tri(LENGTH, total, 0 if FAULT == "causal" else total - LENGTH, dtype=bool)
    content = keep(f"{name}.content", np.einsum("hqd,hkd->hqk", query + near, key))
    position = by_distance(query + far, own, total, FAULT != "shift" or number != 1)
    # What is behind a word has no distance: each engine has other numbers there, which nothing reads.
    is_known = np.tri(LENGTH, total, total - LENGTH, dtype=bool)
    position = keep(f"{name}.position", np.where(is_known, position, np.float32(0)))
    scores = np.where(is_seen, (content + position) * np.float32(HEAD**-0.5), np.float32(-1e9))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares = keep(f"{name}.shares", shares / shares.sum(-1, keepdims=True))
    context = keep(f"{name}.context", np.einsum("hqk,hkd->hqd", shares, value))
    mixed = context.swapaxes(0, 1).reshape(LENGTH, -1) @ own["out"]
    x = keep(f"{name}.attention", norm(x + mixed, own["gain1"], own["shift1"]))
    inner = keep(f"{name}.inner", np.maximum(x @ own["up"], 0))
    return keep(f"{name}.output", norm(x + inner @ own["down"], own["gain2"], own["shift2"]))


table, weights = drawn(WORDS, WIDTH, factor=WORDS**0.5), []
for _ in range(LAYERS):
    weights.append({key: drawn(WIDTH, WIDTH, factor=1.4) for key in ("query", "key", "value", "distance", "out")})
    weights[-1] |= {key: drawn(HEADS, HEAD, factor=2) for key in ("near", "far")}
    weights[-1] |= {"up": drawn(WIDTH, INNER), "down": drawn(INNER, WIDTH)}
    for end in "12":
        weights[-1] |= {f"gain{end}": 1 + drawn(WIDTH), f"shift{end}": drawn(WIDTH)}
head = drawn(WIDTH, WORDS, factor=1.5)
texts = rng.integers(0, WORDS, (STEPS, LENGTH))
memories = [np.zeros((0, WIDTH), np.float32)] * LAYERS
for step, text in enumerate(texts):
    x = keep("embedding", table[text])
    for number in range(LAYERS):
        given = layer(number, x, memories[number])
        kept = given if FAULT == "memory" else x
        memories[number] = np.concatenate([memories[number], kept])[-REMEMBERED:]
        x = given
    logits = keep("logits", x @ head)
    print(*logits[-1].tolist(), sep="\n")
    write(step)
