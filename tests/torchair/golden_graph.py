"""One small graph, and the files that a graph dump makes of it. Run as a module to write the golden files anew."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.ge.convert import convert
from msdump.torchair.ge.graph import GeGraph
from msdump.torchair.ge.passes import GE_PASSES
from msdump.torchair.graph_dump.emit import ge_graph_text

FOLDER = Path(__file__).resolve().parents[1] / "golden" / "torchair"
aten = torch.ops.aten


class _Writer:
    """An FX graph as AOT Autograd would leave it."""

    def __init__(self) -> None:
        self.mode = FakeTensorMode()
        self.graph = fx.Graph()

    def input(self, name: str, *shape: int) -> fx.Node:
        node = self.graph.placeholder(name)
        node.meta["val"] = self.mode.from_tensor(torch.zeros(shape))
        return node

    def call(self, target: Any, *args: Any, line: str = "") -> fx.Node:
        node = self.graph.call_function(target, args)
        values: Any = fx.map_arg(args, lambda argument: argument.meta["val"])
        with self.mode:
            node.meta["val"] = target(*values)
        if line:
            node.stack_trace = f'  File "/home/model.py", line 4, in forward\n    {line}\n        ^^^^^\n'
        return node


def fx_module() -> fx.GraphModule:
    """Views, constants, two outputs at once, a product of what is transposed, and an input that is written."""
    writer = _Writer()
    x, weight, state = writer.input("arg0_1", 2, 3), writer.input("arg1_1", 4, 3), writer.input("arg2_1", 2, 4)
    writer.input("arg3_1", 5)
    turned = writer.call(aten.permute.default, weight, [1, 0], line="y = x @ weight.t()")
    product = writer.call(aten.mm.default, x, turned, line="y = x @ weight.t()")
    scaled = writer.call(aten.mul.Tensor, product, 2, line='text = "a: b"; y = y * 2')
    found = writer.call(aten.topk.default, scaled, 2, line="values, places = y.topk(2)")
    values, places = (writer.call(operator.getitem, found, index) for index in range(2))
    flat = writer.call(aten.view.default, values, [-1], line="return values.view(-1) + 1")
    more = writer.call(aten.add.Tensor, flat, 1, line="return values.view(-1) + 1")
    writer.call(aten.copy_.default, state, scaled)
    writer.graph.output((more, places))
    return fx.GraphModule({}, writer.graph)


def stages() -> Iterator[tuple[GeGraph, bool]]:
    """The graph as converted, and again after the passes; whether it is the optimized one."""
    graph = convert(fx_module(), 1)
    yield graph, False
    for _, apply in GE_PASSES:
        apply(graph, CompilerConfig())
    yield graph, True


def golden_texts() -> dict[str, str]:
    """Name of the golden file -> text."""
    texts: dict[str, str] = {}
    for graph, is_optimized in stages():
        stage = "optimized" if is_optimized else "original"
        for file_type in ("txt", "pbtxt", "py"):
            texts[f"{stage}.{file_type}.golden"] = ge_graph_text(graph, file_type, is_optimized)
    return texts


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in golden_texts().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
