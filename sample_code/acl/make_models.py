"""Train a classifier of handwritten digits and write it as ONNX models in three precisions, two of them with a mistake.

python make_models.py [--folder DIR] [--mend]

Leaves digits.onnx (float32), digits_fp16.onnx, digits_int8.onnx, and what to run them on: pictures.npy, labels.npy.
"""

import argparse
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

TEST_PICTURES = 360
EPOCHS = 60
LAYERS = ("fc1", "fc2", "fc3")


def load_pictures():
    """Pictures (N, 8, 8) as a camera gives them, 8 bits a pixel, and their digits (N,)."""
    digits = load_digits()
    return np.minimum(digits.images * 16, 255).astype(np.uint8), digits.target


def normalize(pictures):
    """Each picture as a row of length 1, so that bright and dark ones look the same: what the model does first."""
    pixels = pictures.reshape(len(pictures), -1).astype(np.float32)
    return pixels / np.sqrt(np.square(pixels).sum(axis=1, keepdims=True))


def train(pictures, labels):
    """Weights and bias of each layer."""
    classifier = MLPClassifier((64, 32), batch_size=64, learning_rate_init=0.005, random_state=0)
    rows = normalize(pictures)
    for _ in range(EPOCHS):
        classifier.partial_fit(rows, labels, classes=range(10))
    return list(zip(classifier.coefs_, classifier.intercepts_, strict=True))


def make_model(name, layers, dtype, ranges=None):
    """The network as an ONNX model.

    dtype   what it computes in
    ranges  largest value that each layer reads; given, the layers compute with numbers of 8 bits
    """
    info, node = helper.make_tensor_value_info, helper.make_node
    onnx_dtype = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    constants = {"row": np.array([0, -1]), "pixels": np.array([1])}
    nodes = [
        node("Cast", ["picture"], ["image"], "to_float", to=onnx_dtype),
        node("Reshape", ["image", "row"], ["x"], "to_row"),
        node("Mul", ["x", "x"], ["squares"], "normalize/square"),
        node("ReduceSum", ["squares", "pixels"], ["energy"], "normalize/sum"),
        node("Sqrt", ["energy"], ["length"], "normalize/length"),
        node("Div", ["x", "length"], ["h0"], "normalize/divide"),
    ]
    for number, (layer, (weight, bias)) in enumerate(zip(LAYERS, layers, strict=True)):
        made, weight, bias = f"h{number}", weight.astype(dtype), bias.astype(dtype)
        if ranges is not None:
            weight_scale, scale = np.float32(np.abs(weight).max() / 127), np.float32(ranges[number] / 255)
            weight = np.round(weight / weight_scale).astype(np.int8) * weight_scale
            constants |= {f"{layer}.scale": scale, f"{layer}.zero": np.uint8(0)}
            nodes += [
                node("QuantizeLinear", [made, f"{layer}.scale", f"{layer}.zero"], [f"{made}_q"], f"{layer}/quantize"),
                node("DequantizeLinear", [f"{made}_q", f"{layer}.scale", f"{layer}.zero"], [f"{made}_d"],
                     f"{layer}/dequantize"),
            ]  # fmt: skip
            made += "_d"
        constants |= {f"{layer}.weight": weight, f"{layer}.bias": bias}
        output = "logits" if layer == LAYERS[-1] else f"{layer}.output"
        nodes.append(node("Gemm", [made, f"{layer}.weight", f"{layer}.bias"], [output], layer))
        if layer != LAYERS[-1]:
            nodes.append(node("Relu", [output], [f"h{number + 1}"], f"{layer}/relu"))
    nodes.append(node("Softmax", ["logits"], ["probabilities"], "softmax", axis=1))
    graph = helper.make_graph(
        nodes,
        name,
        [info("picture", TensorProto.UINT8, ["N", "rows", "columns"])],
        [info("probabilities", onnx_dtype, ["N", 10])],
        [numpy_helper.from_array(np.asarray(value), key) for key, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    return model


def measure_ranges(model, pictures):
    """Largest value that each layer of a model reads."""
    seen = onnx.ModelProto()
    seen.CopyFrom(model)
    names = [f"h{number}" for number in range(len(LAYERS))]
    seen.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
    session = onnxruntime.InferenceSession(seen.SerializeToString(), providers=["CPUExecutionProvider"])
    return [float(found.max()) for found in session.run(names, {"picture": pictures})]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(), help="where the files go (here)")
    parser.add_argument("--mend", action="store_true", help="give each layer of digits_int8.onnx its own range")
    args = parser.parse_args()
    folder = args.folder
    folder.mkdir(parents=True, exist_ok=True)

    pictures, labels = load_pictures()
    layers = train(pictures[:-TEST_PICTURES], labels[:-TEST_PICTURES])
    test, expected = pictures[-TEST_PICTURES:], labels[-TEST_PICTURES:]

    float32 = make_model("digits", layers, np.float32)
    ranges = measure_ranges(float32, pictures[:-TEST_PICTURES])
    if not args.mend:
        # A mistake as it happens: the table of ranges has a line twice, so a layer has the range of its neighbour.
        ranges[1] = ranges[0]
    models = [
        float32,
        make_model("digits_fp16", layers, np.float16),
        make_model("digits_int8", layers, np.float32, ranges),
    ]
    for model in models:
        path = folder / f"{model.graph.name}.onnx"
        onnx.save(model, path)
        print(path)
    np.save(folder / "pictures.npy", test)
    np.save(folder / "labels.npy", expected)


if __name__ == "__main__":
    main()
