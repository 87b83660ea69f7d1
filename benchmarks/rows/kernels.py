"""numpy kernels beside PyTorch's, operator by operator, on the operands of a training step."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from benchmarks.registry import Bench, Line, Sample, row
from benchmarks.timing import timed

SECTION = "Kernels"
BATCHES = {"alexnet": 32, "resnet50": 16, "transformer": 16}
TITLES = {"alexnet": "AlexNet", "resnet50": "ResNet-50", "transformer": "the transformer"}
PEER = "PyTorch's kernels for the same operators"
POOLING, WORST, SHARE = "MaxPoolGrad", 5, 0.01
# Longer than OpenMP's threads spin before they sleep.
SPINNING_S = 0.03
# Calls of the kernels of one type: numpy's and PyTorch's.
Pairs = Mapping[str, list[tuple[Callable[[], Any], Callable[[], Any]]]]


def _kernels(model: str) -> None:
    lines = {f"worst{n}": Line(f"{TITLES[model]}, number {n}", PEER, "<= 1.5") for n in range(1, WORST + 1)}
    if model != "transformer":
        lines = {"pooling": Line(f"{TITLES[model]}: {POOLING}", PEER, "<= 1.5"), **lines}

    @row(f"kernels-{model}", SECTION, lines)
    def measure(bench: Bench) -> Iterator[Mapping[str, Sample]]:
        """Of the types that take 1 % of a step or more, the farthest from PyTorch's; each type as a whole."""
        pairs = _pairs(model, 2 if bench.is_quick else BATCHES[model])
        first = {op_type: _seconds(pairs, op_type) for op_type in [*pairs, *pairs]}
        least = SHARE * sum(ours for ours, _ in first.values())
        ranked = sorted(first, key=lambda op_type: first[op_type][0] / first[op_type][1], reverse=True)
        worst = [op_type for op_type in ranked if first[op_type][0] >= least and op_type != POOLING][:WORST]
        shown = {f"worst{number}": op_type for number, op_type in enumerate(worst, 1)}
        if POOLING in first:
            shown["pooling"] = POOLING
        while True:
            values = {key: _seconds(pairs, op_type) for key, op_type in shown.items()}
            for key, (ours, theirs) in values.items():
                bench.notes[key] = f"{shown[key]}, {ours * 1e3:.1f} ms of {theirs * 1e3:.1f} ms"
            yield values


def _pairs(model: str, batch: int) -> Pairs:
    import msdump

    msdump.install_aliases()
    from benchmarks import mindspore_models

    step, inputs, labels = mindspore_models.training_cell(model, batch)
    for _ in range(2):
        step(inputs, labels)
    ((compiled,),) = step._cache.by_signature.values()
    pairs: defaultdict[str, list[Any]] = defaultdict(list)
    for launch in compiled.executor.launches:
        definition = launch.node.definition
        if launch.op is not None and {"numpy", "torch"} <= definition.kernels.keys():
            pairs[definition.op_type].append(tuple(_call(launch, provider) for provider in ("numpy", "torch")))
    return pairs


def _call(launch: Any, provider: str) -> Callable[[], Any]:
    definition = launch.node.definition
    bind, operands = definition.binds.get(provider), (launch.inputs, launch.attrs, launch.outputs)
    kernel = definition.kernels[provider] if bind is None else bind(*operands)
    return lambda: kernel(*operands)


def _seconds(pairs: Pairs, op_type: str) -> tuple[float, float]:
    """Of all kernels of a type in a step: the shorter of two runs of each.

    PyTorch's threads go on spinning for a while after a kernel, on the cores that numpy's would need. So neither
    library's kernels stand between the other's, as in a step of either, and before numpy's the threads fall asleep.
    """
    runs = []
    for _ in range(2):
        time.sleep(SPINNING_S)
        runs.append([[timed(pair[side]) for pair in pairs[op_type]] for side in (0, 1)])
    ours, theirs = (sum(map(min, *(run[side] for run in runs))) for side in (0, 1))
    return ours, theirs


for _model in BATCHES:
    _kernels(_model)
