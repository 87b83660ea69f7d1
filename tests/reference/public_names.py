"""Calls of names of MindSpore's API that public programs use, by family, and what MindSpore 2.7.0 gives for them.

python public_names.py GOLDEN       under MindSpore: writes the file of golden values
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def numbers(*shape: int, low: float = -1.0, high: float = 1.0, seed: int = 0) -> Array:
    """float32, evenly spread over a range in a random order."""
    values = np.random.default_rng(seed).permutation(np.linspace(low, high, int(np.prod(shape, dtype=int))))
    return values.reshape(shape).astype(np.float32)


def whole(*shape: int, high: int = 5, seed: int = 0, dtype: Any = np.int32) -> Array:
    """Integers from 0 to below `high`."""
    return np.random.default_rng(seed).integers(0, high, shape).astype(dtype)


def _filled(cell: Any, ms: Any) -> Any:
    """The cell with parameters that depend on their place alone."""
    for place, parameter in enumerate(cell.get_parameters()):
        if parameter.ndim and "running" not in parameter.name and "moving" not in parameter.name:
            parameter.set_data(ms.Tensor(numbers(*parameter.shape, seed=place)))
    return cell


def _operators(ms: Any) -> dict[str, Callable[[], Any]]:
    ops, t = ms.ops, ms.Tensor
    volume, picture, signal = t(numbers(1, 2, 4, 4, 4)), t(numbers(1, 3, 5, 6)), t(numbers(40))
    image, boxes = t(numbers(2, 5, 6, 3, low=0)), t(np.array([(0.1, 0.2, 0.8, 0.9), (-0.1, 0.0, 1.2, 1)], np.float32))
    rois = t(np.array([(0, 0.5, 0.5, 3.5, 4.2), (0, 1, 0, 9, 3)], np.float32))
    batch = t(numbers(2, 3, 4)), t(numbers(2, 4, 5, seed=1))
    size = (3, 2)
    return {
        "max_pool3d": lambda: ops.max_pool3d(volume, 2, return_indices=True),
        "max_pool3d padded": lambda: ops.max_pool3d(volume, 3, 2, 1),
        "lrn": lambda: ops.lrn(picture, 1, 2.0, 0.5, 0.75),
        "LRN": lambda: ops.LRN(2)(picture),
        "stft": lambda: ops.stft(signal, 8, return_complex=False),
        "stft of a window": lambda: ops.stft(
            signal, 8, 3, 6, t(numbers(6)), False, onesided=False, return_complex=False
        ),
        "crop_and_resize": lambda: ops.crop_and_resize(image, boxes, t(np.array([0, 1], np.int32)), size),
        **{
            f"CropAndResize {way}": lambda way=way: ops.CropAndResize(way, 0.5)(
                image, boxes, t(np.array([1, 0], np.int32)), size
            )
            for way in ("bilinear", "nearest")
        },
        "CropAndResize bilinear_v2": lambda: ops.CropAndResize("bilinear_v2")(
            image, t(np.array([(0.1, 0.2, 0.7, 0.8)], np.float32)), t(np.array([1], np.int32)), size
        ),
        "ROIAlign": lambda: ops.ROIAlign(2, 2, 0.5, 2)(picture, rois),
        "ROIAlign of all samples": lambda: ops.ROIAlign(2, 3, 1.0, 0, 0)(picture, rois),
        "ROIAlign gradient": lambda: ms.grad(lambda x: ops.ROIAlign(2, 2, 0.5, 2)(x, rois).sum())(picture),
        "batch_dot": lambda: ops.batch_dot(*batch),
        "batch_dot axes": lambda: ops.batch_dot(batch[0], batch[1], (2, 1)),
        "ScalarCast": lambda: ops.ScalarCast()(255.7, ms.int64),
        "gumbel_softmax": lambda: ops.gumbel_softmax(t(numbers(3, 4)), 0.5, True).sum(-1),
        "average": lambda: ms.numpy.average(t(numbers(2, 3)), 1, t(numbers(2, 3, low=0.1)), True),
        "array_equal": lambda: ms.numpy.array_equal(t(numbers(3)), t(numbers(3))),
        "take": lambda: ms.numpy.take(t(numbers(3, 4)), t(np.array([-1, 1, 9])), 1),
        "take wrapped": lambda: ms.numpy.take(t(numbers(3, 4)), t(np.array([-1, 1, 9])), mode="wrap"),
    }


def _layers(ms: Any) -> dict[str, Callable[[], Any]]:
    nn, t = ms.nn, ms.Tensor
    x, pictures = t(numbers(2, 3)), [t(numbers(1, 2, 24, 24, low=0, seed=seed)) for seed in (0, 1)]
    large = [t(whole(1, 1, 16, 16, high=256, seed=seed, dtype=np.uint8)) for seed in (0, 1)]
    scores, labels = t(numbers(3, 4, 2)), t(whole(3, 1, 2, high=4))
    masks = [t(numbers(2, 3, 4, low=0, seed=seed)) for seed in (0, 1)]
    sequences = [t(numbers(length, 2, 8, seed=length)) for length in (4, 3)]
    plain: dict[str, Any] = {"dropout": 0.0}
    return {
        "LRN": lambda: nn.LRN(1, 2.0, 0.5)(t(numbers(1, 3, 2, 2))),
        "PSNR": lambda: nn.PSNR()(*pictures),
        "PSNR of bytes": lambda: nn.PSNR(255)(*large),
        "SSIM": lambda: nn.SSIM()(*pictures),
        "MSSSIM": lambda: nn.MSSSIM(power_factors=(0.3, 0.7), filter_size=5)(*pictures),
        "ReduceLogSumExp": lambda: nn.ReduceLogSumExp(1, keep_dims=True)(x),
        "Range": lambda: (nn.Range(1, 9, 3)(), nn.Range(4)(), nn.Range(0, 1, 0.25)()),
        "Moments": lambda: nn.Moments(axis=0)(x),
        "Moments kept": lambda: nn.Moments(keep_dims=True)(x),
        "Unflatten": lambda: nn.Unflatten(1, (3, 1))(x),
        "EmbeddingLookup": lambda: _filled(nn.EmbeddingLookup(4, 3), ms)(t(whole(5, high=4))),
        "TimeDistributed": lambda: _filled(nn.TimeDistributed(nn.Dense(3, 2), 1), ms)(t(numbers(2, 4, 3))),
        "TimeDistributed at once": lambda: _filled(nn.TimeDistributed(nn.Dense(3, 2), 1, 0), ms)(t(numbers(2, 4, 3))),
        "Conv2dBnAct": lambda: _filled(nn.Conv2dBnAct(2, 3, 3, has_bn=True, activation="leakyrelu"), ms)(pictures[0]),
        "DenseBnAct": lambda: _filled(nn.DenseBnAct(3, 2, has_bn=True, activation="relu"), ms)(x),
        "CellDict": lambda: [
            cell(x) for cell in nn.CellDict([["one", nn.ReLU()], ["two", nn.Sigmoid()]]).values()
        ],
        "DiceLoss": lambda: nn.DiceLoss()(*masks),
        "MultiClassDiceLoss": lambda: nn.MultiClassDiceLoss(ignore_indiex=1)(*masks),
        "FocalLoss of classes": lambda: nn.FocalLoss(t(numbers(4, low=0.1)), 1.5)(scores, labels),
        "FocalLoss": lambda: nn.FocalLoss(reduction="sum")(scores, t(numbers(3, 4, 2, low=0))),
        "TransformerDecoderLayer": lambda: _filled(nn.TransformerDecoderLayer(8, 2, 6, **plain), ms)(*sequences),
        "TransformerDecoder": lambda: _filled(
            nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 6, norm_first=True, **plain), 2), ms
        )(*sequences),
        "polynomial_decay_lr": lambda: [
            nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5), nn.polynomial_decay_lr(0.1, 0.01, 6, 2, 2, 0.5, True),
        ],
        "Dirac": lambda: ms.common.initializer.initializer(ms.common.initializer.Dirac(2), (4, 3, 2, 3)).init_data(),
        "Sparse": lambda: (
            ms.common.initializer.initializer(ms.common.initializer.Sparse(0.4), (5, 2)).init_data() == 0
        ).sum(0),
    }  # fmt: skip


def _metrics(ms: Any) -> dict[str, Callable[[], Any]]:
    train = ms.train
    scores, labels = numbers(6, 3, low=0.05), whole(6, high=3)

    def of(metric: Any, *batches: Any, **options: Any) -> Any:
        metric.clear()
        for batch in batches:
            metric.update(*(ms.Tensor(each) for each in batch))
        return metric.eval(**options)

    batches = (scores[:3], labels[:3]), (scores[3:], labels[3:])
    binary = numbers(6, low=0), np.array([0, 1, 1, 0, 1, 0])
    return {
        "F1": lambda: of(train.F1(), *batches),
        "Fbeta": lambda: of(train.Fbeta(2), *batches, average=True),
        "Perplexity": lambda: of(train.Perplexity(), *batches),
        "Perplexity without a label": lambda: of(train.Perplexity(1), *batches),
        **{
            f"ConfusionMatrix {way}": lambda way=way: of(train.ConfusionMatrix(3, way), *batches)
            for way in ("no_norm", "target", "prediction", "all")
        },
        "ConfusionMatrix threshold": lambda: of(train.ConfusionMatrix(2, threshold=0.6), binary),
        "Dice": lambda: of(train.Dice(), (numbers(2, 3, low=0), whole(2, 3, high=2))),
        "ROC": lambda: of(train.ROC(), binary),
        "ROC of classes": lambda: of(train.ROC(3), (scores, np.array([0, 1, 2, 0, 1, 2]))),
        "auc": lambda: train.auc(np.array([0, 0.5, 1.0]), np.array([0.2, 0.7, 1.0])),
        "auc sorted": lambda: train.auc(np.array([1.0, 0, 0.5]), np.array([1.0, 0.2, 0.7]), True),
    }


def _optimizers(ms: Any) -> dict[str, Callable[[], Any]]:
    optim = ms.experimental.optim

    def trained(make: Callable[[list[Any]], Any]) -> Any:
        weights = [ms.Parameter(ms.Tensor(numbers(3, 2, seed=seed)), f"w{seed}") for seed in (0, 1)]
        optimizer = make(weights)
        for step in range(4):
            optimizer(tuple(ms.Tensor(numbers(3, 2, seed=seed + 2 + step)) for seed in (0, 5)))
        return [weight.value() for weight in weights]

    settings: dict[str, list[dict[str, Any]]] = {
        "ASGD": [{"lr": 0.1, "weight_decay": 0.1}, {"lr": 0.1, "lambd": 0.1, "t0": 1.0}],
        "Adadelta": [{"lr": 0.5, "rho": 0.8, "maximize": True}],
        "Adagrad": [{"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.2}],
        "Adamax": [{"lr": 0.1, "betas": (0.8, 0.9), "weight_decay": 0.1}],
        "NAdam": [{"lr": 0.1, "betas": (0.8, 0.9)}],
        "RAdam": [{"lr": 0.1}, {"lr": 0.1, "betas": (0.5, 0.6)}],
        "RMSprop": [{"lr": 0.1, "alpha": 0.8}, {"lr": 0.1, "momentum": 0.5, "centered": True}],
        "Rprop": [{"lr": 0.1}, {"lr": 0.1, "etas": (0.4, 1.5), "step_sizes": (0.05, 0.2)}],
    }
    layers: dict[str, Callable[[list[Any]], Any]] = {
        "nn.AdaMax": lambda w: ms.nn.AdaMax(w, 0.1, 0.8, 0.9, weight_decay=0.1, loss_scale=2.0),
    }
    return {
        **{name: lambda make=make: trained(make) for name, make in layers.items()},
        **{
            f"{name} {number}": lambda name=name, options=options: trained(lambda w: getattr(optim, name)(w, **options))
            for name, each in settings.items()
            for number, options in enumerate(each)
        },
    }


def _schedules(ms: Any) -> dict[str, Callable[[], Any]]:
    optim = ms.experimental.optim
    of = optim.lr_scheduler

    def rates(make: Callable[[Any], Any], *metrics: float) -> Any:
        weights = [ms.Parameter(ms.Tensor(numbers(2)), name) for name in ("a", "b")]
        optimizer = optim.SGD([{"params": [weights[0]]}, {"params": [weights[1]], "lr": 0.2}], lr=0.1)
        schedule, seen = make(optimizer), []
        for metric in metrics or [None] * 8:
            seen.append([float(rate) for rate in schedule.get_last_lr()])
            schedule.step(*[] if metric is None else [metric])
        return [*seen, [float(rate) for rate in schedule.get_last_lr()]]

    settings: dict[str, dict[str, Any]] = {
        "StepLR": {"step_size": 3, "gamma": 0.5},
        "MultiStepLR": {"milestones": [2, 4, 4], "gamma": 0.5},
        "ExponentialLR": {"gamma": 0.8},
        "ConstantLR": {"factor": 0.5, "total_iters": 3},
        "LinearLR": {"start_factor": 0.4, "total_iters": 4},
        "PolynomialLR": {"total_iters": 5, "power": 1.5},
        "CosineAnnealingLR": {"T_max": 3, "eta_min": 0.01},
        "CosineAnnealingWarmRestarts": {"T_0": 2, "T_mult": 2, "eta_min": 0.01},
        "CyclicLR": {"base_lr": [0.01, 0.02], "max_lr": 0.3, "step_size_up": 2, "step_size_down": 3},
        "CyclicLR exp_range": {"base_lr": 0.01, "max_lr": 0.3, "step_size_up": 2, "mode": "exp_range", "gamma": 0.9},
        "LambdaLR": {"lr_lambda": lambda epoch: 0.9**epoch},
        "MultiplicativeLR": {"lr_lambda": [lambda epoch: 0.9, lambda epoch: 0.5]},
    }
    plateau = {"factor": 0.5, "patience": 1, "cooldown": 1, "min_lr": [0.03, 0.0]}
    return {
        **{
            name: lambda name=name, options=options: rates(lambda each: getattr(of, name.split()[0])(each, **options))
            for name, options in settings.items()
        },
        "SequentialLR": lambda: rates(
            lambda each: of.SequentialLR(
                each, [of.ConstantLR(each, 0.1, 2), of.LambdaLR(each, lambda epoch: 0.9**epoch)], [3]
            )
        ),
        "ReduceLROnPlateau": lambda: rates(
            lambda each: of.ReduceLROnPlateau(each, **plateau), 1.0, 0.5, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6
        ),
        "ReduceLROnPlateau max": lambda: rates(
            lambda each: of.ReduceLROnPlateau(each, "max", patience=0, threshold_mode="abs"), 1.0, 2.0, 2.00001, 3.0
        ),
    }


FAMILIES = {
    "optimizers": _optimizers,
    "schedules": _schedules,
    "operators": _operators,
    "layers": _layers,
    "metrics": _metrics,
}


def listed(value: Any) -> Any:
    """A result as lists of numbers, whatever holds them."""
    if isinstance(value, tuple | list):
        return [listed(each) for each in value]
    if hasattr(value, "asnumpy"):
        value = value.asnumpy()
    return np.asarray(value).astype(np.float64).tolist()


def main(path: str) -> None:
    """Write the golden values."""
    import mindspore as ms
    import mindspore.experimental.optim
    import mindspore.numpy

    golden: dict[str, dict[str, Any]] = {}
    for family, make in FAMILIES.items():
        golden[family] = {}
        for name, call in make(ms).items():
            for mode in (ms.PYNATIVE_MODE, ms.GRAPH_MODE):
                ms.set_context(mode=mode)
                try:
                    golden[family][name] = listed(call())
                    break
                except Exception as error:  # noqa: BLE001  (a wheel for the CPU lacks some)
                    print(
                        f"{family}: {name}: {type(error).__name__}: {str(error).strip().splitlines()[0]}",
                        file=sys.stderr,
                    )
    with open(path, "w", encoding="utf-8") as file:
        json.dump(golden, file, indent=None, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main(sys.argv[1])
