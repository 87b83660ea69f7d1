"""Two engines of one's own saved what their layers make while they wrote down a sound: an encoder and a decoder."""

import math
import sys
from pathlib import Path

import numpy as np

ANSWER = {
    "kind": "third trial: speech of two engines",
    "entry": "eager",
    "run": "python {script} {mode}",
    "ask": "compare {faulty} {golden}",
    "line": False,
    "variants": {
        "frames": {
            "goes_wrong": "The second convolution, with stride 2, begins at the second frame.",
            "operator": "encoder.conv2",
            "wants": "the second convolution of the encoder",
        },
        "gelu": {
            "goes_wrong": "The GELU of the second layer of the encoder is x times a sigmoid of 1.702 x.",
            "operator": "encoder.layers.1.inner",
            "wants": "the activation of the second layer of the encoder",
        },
        "unnormed": {
            "goes_wrong": "The decoder reads the encoder in front of its last norm.",
            "operator": "decoder.layers.0.cross_",
            "wants": "the keys, or values, that the first layer of the decoder makes of the encoder",
        },
        "bias": {
            "goes_wrong": "The values that the second layer of the decoder makes of the encoder lack their bias.",
            "operator": "decoder.layers.1.cross_value",
            "wants": "the values that the second layer of the decoder makes of the encoder",
        },
        "beams": {
            "goes_wrong": "The cached values of the first layer are not reordered when hypotheses change places.",
            "operator": "decoder.layers.0.self_mixed",
            "step": 2,
            "wants": "what the self-attention of the first layer mixes in step 2; steps 0 and 1 agree",
        },
    },
}

FAULT = sys.argv[2] if sys.argv[1] == "faulty" else ""
IS_GOLDEN = sys.argv[1] == "golden"
WIDTH, HEADS, INNER, LAYERS, BANDS, FRAMES, BEAMS, WORDS, STEPS = 16, 2, 32, 2, 10, 12, 2, 21, 4

rng = np.random.default_rng(191)
saved = {}
weights = {}


def draw(key, *shape, factor=1.0):
    weights[key] = (factor * rng.standard_normal(shape) / shape[0] ** 0.5).astype(np.float32)


def draw_norm(key):
    weights[f"{key}.gain"] = rng.uniform(0.7, 1.3, WIDTH).astype(np.float32)
    weights[f"{key}.shift"] = rng.uniform(-0.3, 0.3, WIDTH).astype(np.float32)


def draw_layer(key, parts):
    for part in parts:
        for name in ("query", "key", "value", "out"):
            draw(f"{key}.{part}_{name}", WIDTH, WIDTH, factor=1.5)
            draw(f"{key}.{part}_{name}.bias", WIDTH)
        draw_norm(f"{key}.{part}_norm")
    draw_norm(f"{key}.norm")
    draw(f"{key}.up", WIDTH, INNER, factor=1.5), draw(f"{key}.up.bias", INNER)
    draw(f"{key}.down", INNER, WIDTH, factor=1.5), draw(f"{key}.down.bias", WIDTH)


def keep(name, x):
    """One engine has the beams in front of the heads, the other has the beams and heads in one axis, in float16."""
    x = np.asarray(x)
    if not IS_GOLDEN:
        x = (x.reshape(-1, *x.shape[2:]) if x.ndim == 4 else x).astype(np.float16)
    saved[name] = np.ascontiguousarray(x)


def write(step):
    folder = Path(sys.argv[1], f"step_{step}")
    folder.mkdir(parents=True)
    if IS_GOLDEN:
        for name, x in saved.items():
            np.save(folder / f"{name}.npy", x)
    else:
        np.savez(folder / "tensors.npz", **saved)
    saved.clear()


def linear(key, x, has_bias=True):
    x = x @ weights[key]
    return x + weights[f"{key}.bias"] if has_bias else x


def norm(key, x):
    centred = x - x.mean(-1, keepdims=True)
    root = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(1e-5))
    x = centred / root * weights[f"{key}.gain"] + weights[f"{key}.shift"]
    keep(key, x)
    return x


def gelu(x, is_quick=False):
    if is_quick:
        return x / (1 + np.exp(-np.float32(1.702) * x))
    return x * np.float32(0.5) * (1 + np.vectorize(math.erf, otypes=[np.float32])(x / np.float32(2**0.5)))


def convolution(key, x, stride):
    first = 1 if FAULT == "frames" and stride == 2 else 0
    padded = np.pad(x, ((1, 1), (0, 0)))
    places = range(first, len(x), stride)
    x = np.stack([np.einsum("kc,kcd->d", padded[place : place + 3], weights[key]) for place in places])
    x = gelu(x + weights[f"{key}.bias"])
    keep(key, x)
    return x


def heads(x):
    """(beams, heads, words, size)"""
    return x.reshape(*x.shape[:-1], HEADS, -1).swapaxes(-2, -3)


def mixed(key, query, keys, values):
    scores = query @ keys.swapaxes(-1, -2) / np.float32((WIDTH // HEADS) ** 0.5)
    scores = np.exp(scores - scores.max(-1, keepdims=True))
    shares = scores / scores.sum(-1, keepdims=True)
    keep(f"{key}_shares", shares)
    x = (shares @ values).swapaxes(-2, -3)
    x = x.reshape(*x.shape[:-2], -1)
    keep(f"{key}_mixed", x)
    return linear(f"{key}_out", x)


def forward(key, x, is_quick=False):
    inner = gelu(linear(f"{key}.up", norm(f"{key}.norm", x)), is_quick)
    keep(f"{key}.inner", inner)
    x = x + linear(f"{key}.down", inner)
    keep(f"{key}.output", x)
    return x


def part(key, name, x, has_bias=True):
    x = heads(linear(f"{key}_{name}", x, has_bias))
    keep(f"{key}_{name}", x)
    return x


def encoded(sound):
    x = convolution("encoder.conv2", convolution("encoder.conv1", sound, 1), 2) + weights["encoder.places"]
    for number in range(LAYERS):
        key = f"encoder.layers.{number}"
        h = norm(f"{key}.self_norm", x[None])
        query, keys, values = (part(f"{key}.self", name, h) for name in ("query", "key", "value"))
        x = x + mixed(f"{key}.self", query, keys, values)[0]
        x = forward(key, x, FAULT == "gelu" and number == 1)
    return x, norm("encoder.norm", x)


def decoded(words, step):
    x = (weights["decoder.words"][words] + weights["decoder.places"][step])[:, None]
    for number in range(LAYERS):
        key = f"decoder.layers.{number}"
        h = norm(f"{key}.self_norm", x)
        for name in ("key", "value"):
            made = part(f"{key}.self", name, h)
            before = cache.get((number, name), made[:, :, :0])
            cache[number, name] = np.concatenate([before, made], 2)
        query = part(f"{key}.self", "query", h)
        x = x + mixed(f"{key}.self", query, cache[number, "key"], cache[number, "value"])
        h = norm(f"{key}.cross_norm", x)
        x = x + mixed(f"{key}.cross", part(f"{key}.cross", "query", h), *crossed[number])
        x = forward(key, x)
    logits = norm("decoder.norm", x)[:, 0] @ weights["decoder.words"].T
    keep("logits", logits)
    return logits


for name, into in (("conv1", BANDS), ("conv2", WIDTH)):
    weights[f"encoder.{name}"] = (rng.standard_normal((3, into, WIDTH)) / (into * 2) ** 0.5).astype(np.float32)
    draw(f"encoder.{name}.bias", WIDTH)
draw("encoder.places", FRAMES // 2, WIDTH)
for number in range(LAYERS):
    draw_layer(f"encoder.layers.{number}", ["self"])
    draw_layer(f"decoder.layers.{number}", ["self", "cross"])
draw_norm("encoder.norm"), draw_norm("decoder.norm")
draw("decoder.words", WORDS, WIDTH, factor=WORDS**0.5 / 2), draw("decoder.places", STEPS, WIDTH, factor=2)
sound = rng.standard_normal((FRAMES, BANDS)).astype(np.float32)
told = rng.integers(0, WORDS, (STEPS, BEAMS))
parents = [[0, 1], [0, 1], [1, 0], [1, 0]]

cache, crossed = {}, []
rest, read = encoded(sound)
read = rest if FAULT == "unnormed" else read
for number in range(LAYERS):
    key = f"decoder.layers.{number}.cross"
    values_have_bias = FAULT != "bias" or number != 1
    crossed.append([part(key, "key", read[None]), part(key, "value", read[None], values_have_bias)])
for step in range(STEPS):
    for (number, name), x in cache.items():
        if FAULT != "beams" or (number, name) != (0, "value"):
            cache[number, name] = x[parents[step]]
    print(*decoded(told[step], step).ravel().tolist(), sep="\n")
    write(step)
