"""FX summary: which operators an FX graph calls, how often, and with what."""

from __future__ import annotations

import csv
import io
import operator
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import fx
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.safe_files import write_safe_text
from msdump.torchair.eager_graph import target_name
from msdump.torchair.ge.registry import has_converter
from msdump.torchair.graph_dump.files import new_summary_file

HEADER = ("目标函数", "函数类型", "支持状态", "调用次数", "输入统计", "输出统计")
SUPPORTED, UNSUPPORTED = "支持", "不支持"
# Excel takes a file for UTF-8 only with this in front.
_BYTE_ORDER_MARK = "\ufeff"


@dataclass
class _OperatorCalls:
    """Calls of one operator: inputs and outputs, each with how often it came."""

    inputs: Counter[str] = field(default_factory=Counter)
    outputs: Counter[str] = field(default_factory=Counter)

    def count(self) -> int:
        return sum(self.inputs.values())


def write_summary(module: fx.GraphModule, example_inputs: Sequence[object], config: CompilerConfig) -> Path:
    """Publish the summary of one graph, and say where.

    Raises: WriteError.
    Source: TorchAir, `debug.fx_summary.type = "csv"`.
    """
    path = new_summary_file(config)
    write_safe_text(path, summary_text(module, example_inputs))
    return path


def summary_text(module: fx.GraphModule, example_inputs: Sequence[object] = ()) -> str:
    """One line for each operator, in the order of first calls, as comma-separated values.

    example_inputs  for graphs whose nodes do not know their values yet
    """
    calls = [node for node in module.graph.nodes if node.op == "call_function"]
    if not all("val" in node.meta for node in calls):
        FakeTensorProp(module).propagate(*example_inputs)
    by_target: dict[object, _OperatorCalls] = {}
    for node in calls:
        counts = by_target.setdefault(node.target, _OperatorCalls())
        counts.inputs[_arguments(node)] += 1
        counts.outputs[_shown(node.meta.get("val"))] += 1
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(HEADER)
    for target, counts in by_target.items():
        state = SUPPORTED if target is operator.getitem or has_converter(target) else UNSUPPORTED
        row = (
            target_name(target),
            _kind(target),
            state,
            counts.count(),
            _counted(counts.inputs),
            _counted(counts.outputs),
        )
        writer.writerow(row)
    return _BYTE_ORDER_MARK + buffer.getvalue()


def _kind(target: object) -> str:
    """ "aten", "prims" or another namespace of operators; "builtin" for functions of Python."""
    if isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
        return str(target.namespace)
    return "builtin"


def _arguments(node: fx.Node) -> str:
    shown = [_shown(argument) for argument in node.args]
    shown += [f"{name}={_shown(argument)}" for name, argument in node.kwargs.items()]
    return f"({', '.join(shown)})"


def _shown(value: object) -> str:
    """`float32(2, 3)` for tensors, lists of them in brackets, anything else as it prints."""
    if isinstance(value, fx.Node):
        return _shown(value.meta.get("val", value.name))
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)


def _counted(counts: Counter[str]) -> str:
    return "\n".join(f"{count}次：{text}" for text, count in counts.items())
