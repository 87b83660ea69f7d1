"""Whether quantised models are ranked as onnxruntime's own tool measures them: `pip install --no-deps
torchvision==0.28.0 transformers tokenizers regex pillow; python -m tests.quantised_zoo`.

Each model has random weights and a small input. It is exported to ONNX, quantised by onnxruntime (QDQ, int8 weights,
calibrated on 8 inputs), and both are dumped for the last one of these. `msdump compare` ranks what that shows;
`onnxruntime.quantization.qdq_loss_debug` measures the same two models. Names on the command line choose models.
"""

from __future__ import annotations

import contextlib
import io
import logging
import math
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from onnxruntime.quantization import qdq_loss_debug as loss
from onnxruntime.quantization.shape_inference import quant_pre_process

from msdump.analysis import Comparison, compare_dumps
from msdump.analysis.compare.quantised.ranking import Contribution
from tests import onnx_zoo

_CALIBRATED = 8
FIRST = 3


class _Attention(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (torch.nn.Linear(width, width) for _ in range(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (
            part(x).reshape(*x.shape[:2], self.heads, -1).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        result: torch.Tensor = self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(x.shape))
        return result


class _Block(torch.nn.Module):
    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = _Attention(width, heads)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.wide, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.first(x))
        result: torch.Tensor = x + self.narrow(torch.nn.functional.gelu(self.wide(self.second(x))))
        return result


def _transformer() -> onnx_zoo.Model:
    return torch.nn.Sequential(*(_Block(32, 4) for _ in range(3)), torch.nn.Linear(32, 10)), (torch.randn(1, 12, 32),)


MODELS: dict[str, Callable[[], onnx_zoo.Model]] = {
    "transformer": _transformer,
    **{name: onnx_zoo.MODELS[name] for name in ("resnet18", "mobilenet_v2", "BERT")},
}


class _Reader(CalibrationDataReader):  # type: ignore[misc]
    def __init__(self, inputs: list[dict[str, Any]]) -> None:
        self.rest = iter(inputs)

    def get_next(self) -> dict[str, Any] | None:
        return next(self.rest, None)


@dataclass(frozen=True)
class Measured:
    """A quantised model as both measure it, in dB: name of the initializer, or of the tensor in letters alone -> noise.

    weights, activations   of weights, and of activations against those in floats: msdump's
    their_weights, ...     those of qdq_loss_debug
    wrapped                msdump's noise and its, of constants in codes with a zero point, which qdq_loss_debug takes
                           from the codes in 8 bits
    added                  of activations: the error that each of them adds, as msdump ranks them
    """

    comparison: Comparison
    weights: Mapping[str, float]
    their_weights: Mapping[str, float]
    wrapped: Mapping[str, tuple[float, float]]
    activations: Mapping[str, float]
    their_activations: Mapping[str, float]
    added: Mapping[str, float]


def measured(name: str, folder: Path, per_channel: bool = False) -> Measured:
    """Of a model of MODELS, whose files are written into the folder."""
    with warnings.catch_warnings(), _silent():
        warnings.simplefilter("ignore")
        paths, inputs = _written(name, folder, per_channel)
        matching = loss.create_weight_matching(*map(str, paths))
        # Biases are not ranked, and of zeros or a single number there is no ratio.
        matrices = {one: both for one, both in matching.items() if both["float"].ndim > 1 and both["float"].any()}
        unsigned = _with_zero_points(onnx.load(paths[1]))
        weights = loss.compute_weight_error({one: match for one, match in matrices.items() if one not in unsigned})
        wrapped = loss.compute_weight_error({one: match for one, match in matrices.items() if one in unsigned})
        activations = []
        for path in paths:
            whole = path.with_name(f"{path.stem}_all.onnx")
            loss.modify_model_output_intermediate_tensors(str(path), str(whole))
            activations.append(loss.collect_activations(str(whole), _Reader([inputs])))
    errors = loss.compute_activation_error(
        {
            tensor: match
            for tensor, match in loss.create_activation_matching(activations[1], activations[0]).items()
            if "float" in match
        }
    )
    for path in paths:
        onnx_zoo.dump_of_onnx(onnx.load(path), map(torch.from_numpy, inputs.values()), folder / path.stem)
    comparison = compare_dumps(folder / paths[1].stem, folder / paths[0].stem)
    assert comparison.quantised is not None
    ranking = comparison.quantised.ranking
    noise = {weight: one.weight.sqnr_db for one, weight in _with_weights(ranking, onnx.load(paths[0])) if one.weight}
    roundings = [one for one in ranking if one.activation is not None]
    rows = {_plain(one.operator.op_name.removesuffix("_QuantizeLinear")): one for one in roundings}
    rows = {tensor: one for tensor, one in rows.items() if one.error}
    return Measured(
        comparison,
        {weight: noise[weight] for weight in noise if weight in weights},
        weights,
        {weight: (noise.get(weight, math.nan), theirs) for weight, theirs in wrapped.items()},
        {tensor: -20 * math.log10(one.error or 1.0) for tensor, one in rows.items()},
        {_plain(tensor): error["xmodel_err"] for tensor, error in errors.items()},
        {tensor: one.added or 0.0 for tensor, one in rows.items()},
    )


def lowest(noise: Mapping[str, float]) -> list[str]:
    """Names with the most noise; a tensor that is only reshaped has the same."""
    return sorted(noise, key=lambda name: (round(noise[name], 3), name))[:FIRST]


def _written(name: str, folder: Path, per_channel: bool) -> tuple[tuple[Path, Path], dict[str, Any]]:
    """The model in floats and the quantised one, and the input that both are measured on."""
    torch.manual_seed(0)
    net, example = onnx_zoo.with_noise(MODELS[name]())
    rng = np.random.default_rng(0)
    raw, whole, codes = (folder / f"{stem}.onnx" for stem in ("exported", "float", "int8"))
    onnx.save(onnx_zoo.exported(net, example, False), raw)
    quant_pre_process(str(raw), str(whole))
    names = [one.name for one in onnx.load(whole).graph.input]
    inputs = [
        {given: _alike(rng, np.asarray(value)) for given, value in zip(names, example, strict=True)}
        for _ in range(_CALIBRATED)
    ]
    quantize_static(
        str(whole), str(codes), _Reader(inputs), quant_format=QuantFormat.QDQ, per_channel=per_channel,
        activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
    )  # fmt: skip
    return (whole, codes), inputs[-1]


def _with_zero_points(model: onnx.ModelProto) -> set[str]:
    """Constants whose codes have a zero point that is not 0."""
    end = "_zero_point"
    points = {one.name: onnx.numpy_helper.to_array(one) for one in model.graph.initializer if one.name.endswith(end)}
    return {name.removesuffix(end) for name, value in points.items() if value.any()}


def _alike(rng: np.random.Generator, example: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    if example.dtype.kind == "f":
        return np.asarray(rng.standard_normal(example.shape), example.dtype)
    return np.asarray(rng.integers(example.min(), example.max() + 1, example.shape), example.dtype)


def _with_weights(ranking: tuple[Contribution, ...], model: onnx.ModelProto) -> Iterator[tuple[Contribution, str]]:
    """Rows with the initializers that their operators multiply by."""
    constants = {one.name for one in model.graph.initializer}
    read = {node.name: next((one for one in node.input[:2] if one in constants), "") for node in model.graph.node}
    for one in ranking:
        # In file names the slashes of a name are other letters.
        names = [name for name in read if _plain(name) == _plain(one.operator.op_name) and read[name]]
        if len(names) == 1:
            yield one, read[names[0]]


def _plain(name: str) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in name)


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    level = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(level)


def main() -> int:
    """0 when the first three agree for all models."""
    print("| model | weights | dB apart | first three | activations | dB apart | first three |\n" + "|---" * 7 + "|")
    failed = []
    for name in sys.argv[1:] or MODELS:
        for per_channel in (False, True):
            with tempfile.TemporaryDirectory() as folder:
                found = measured(name, Path(folder), per_channel)
            cells = [f"{name}{', per channel' if per_channel else ''}"]
            for mine, theirs in ((found.weights, found.their_weights), (found.activations, found.their_activations)):
                apart = max(abs(mine.get(one, math.inf) - theirs[one]) for one in theirs)
                is_equal = lowest(mine) == lowest(theirs)
                cells += [str(len(theirs)), f"{apart:.0e}", "equal" if is_equal else "other"]
                failed += [] if is_equal else [name]
            print(f"| {' | '.join(cells)} |", flush=True)
            most = ", ".join(sorted(found.added, key=lambda one: -found.added[one])[:FIRST])
            print(f"  most error: {', '.join(lowest(found.activations))}; adds most: {most}", flush=True)
            for weight, (own, other) in found.wrapped.items():
                print(f"  {weight}, with a zero point: {own:.1f} dB, {other:.1f} by qdq_loss_debug", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
