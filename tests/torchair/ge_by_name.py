"""Functions run as GE graphs, each of which is held against its FX graph: what bears a node's name has its values."""

from __future__ import annotations

import itertools
from typing import Any

import torch
from torch import fx
from torch._functorch.aot_autograd import aot_module_simplified

from msdump.frontends.torch.program import FxProgram
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.ge.compile import compile_ge
from msdump.torchair.ge.graph import CONST, GeGraph
from msdump.torchair.ge.program import GeModule


class Seen(fx.Interpreter):
    """Runs an FX graph and keeps a copy of what each node gives."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self.values: dict[str, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        result = super().run_node(n)
        self.values[n.name] = _copied(result)
        return result


def ge_values(module: GeModule, args: list[Any]) -> dict[str, Any]:
    """The same of a GE graph, run operator by operator."""
    program, values = FxProgram(module), {}
    slots = program.begin(args)
    for call in program.calls:
        slots[call.out] = call.run(slots)
        values[call.node.name] = _copied(slots[call.out])
    return values


def _copied(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_copied(item) for item in value]
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def _compare(module: fx.GraphModule, graph: GeGraph, args: list[Any]) -> int:
    """Run both graphs on copies of these arguments. Returns how many named outputs were compared."""
    ge_module, interpreter, state = GeModule(graph), Seen(module), torch.get_rng_state()
    with torch.no_grad():
        interpreter.run(*_copied(args))
        torch.set_rng_state(state)
        actual = ge_values(ge_module, _copied(args))
    torch.set_rng_state(state)
    expected, compared = interpreter.values, 0
    for op in graph.ops:
        for tensor in op.outputs:
            if not tensor.fx_name or tensor.is_host:
                continue
            name, index = tensor.fx_name.partition("-")[0], tensor.fx_name.rpartition(".")[2]
            promised = expected[name]
            found = op.constant if op.type == CONST else actual[ge_module.nodes[op].name]
            promised = promised[int(index)] if isinstance(promised, list) else promised
            found = found[tensor.index] if isinstance(found, list) else found
            if "empty" not in tensor.fx_name:
                torch.testing.assert_close(
                    found, promised, equal_nan=True, msg=lambda text, told=tensor: f"{told.name} {told.fx_name}: {text}"
                )
            compared += 1
    return compared


def compared_by_name(function: Any, graphs: list[GeGraph], counts: list[int], **options: Any) -> Any:
    """The function as GE graphs, each of which is compared with its FX graph when it first runs."""
    ids = itertools.count(1)

    def compiler(module: Any, example_inputs: Any) -> Any:
        graph, run = compile_ge(module, example_inputs, next(ids), CompilerConfig())
        graphs.append(graph)
        waiting = [graph]

        def boxed(args: list[Any]) -> Any:
            if waiting:
                counts.append(_compare(module, waiting.pop(), args))
            return run(args)

        boxed._boxed_call = True
        return boxed

    def backend(module: Any, example_inputs: Any, **_: Any) -> Any:
        return aot_module_simplified(
            module,
            example_inputs,
            fw_compiler=compiler,
            bw_compiler=compiler,
            inference_compiler=compiler,
            keep_inference_input_mutations=True,
        )

    torch._dynamo.reset()
    return torch.compile(function, backend=backend, **options)
