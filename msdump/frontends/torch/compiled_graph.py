"""The backend that `torch.compile(model, backend="msdump")` names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from torch import fx
from torch._functorch.aot_autograd import aot_module_simplified

from msdump.engine import opening
from msdump.errors import ConfigError
from msdump.frontends.torch import outside
from msdump.frontends.torch.graph_from_fx import BACKWARD, FORWARD, INFERENCE
from msdump.frontends.torch.partition import partition
from msdump.frontends.torch.places import drop_wrapper, input_names
from msdump.frontends.torch.program import FxProgram
from msdump.frontends.torch.runner import CompiledModel, GraphRunner
from msdump.frontends.torch.session import open_session
from msdump.frontends.torch.taps import Inner


def compile_graph(
    module: fx.GraphModule, example_inputs: Sequence[object], *, inner: Inner | None = None, **options: Any
) -> Callable[..., object]:
    """Run the ATen operators of a captured graph one by one, and dump what MINDSPORE_DUMP_CONFIG asks for.

    inner   runs the graph instead, with taps where operators are dumped
    Edges:  without a configuration the operators run without observers.
    Raises: ConfigError for options, of which there are none; else as `opening.open_mindspore`.
    """
    if options.get("options"):
        raise ConfigError(
            f"torch.compile: expected no options for the backend msdump, got {sorted(options['options'])}. "
            "The file that MINDSPORE_DUMP_CONFIG names selects what is dumped."
        )
    opening.call_when_sessions_change(torch._dynamo.reset)
    session = open_session(example_inputs, is_compiled_only=True)
    if session is None:
        plain = _plain
        return _compiled(module, example_inputs, plain, plain, plain)
    outside.note_compilation()
    drop_wrapper(module)
    model = CompiledModel(session, input_names(module), example_inputs, torch.is_grad_enabled())

    def forward(graph: fx.GraphModule, _: Sequence[object]) -> GraphRunner:
        return GraphRunner(graph, model, FORWARD, open_output_count(graph), inner)

    def backward(graph: fx.GraphModule, _: Sequence[object]) -> GraphRunner:
        return GraphRunner(graph, model, BACKWARD, output_count(graph), inner)

    def inference(graph: fx.GraphModule, _: Sequence[object]) -> GraphRunner:
        return GraphRunner(graph, model, INFERENCE, output_count(graph), inner)

    compiled: Any = outside.counted(_compiled(module, example_inputs, forward, backward, inference))
    # `torch._dynamo.disable`, which Dynamo calls with it, keeps attributes.
    compiled.msdump_shows_operators = True
    return cast(Callable[..., object], compiled)


def _compiled(
    module: fx.GraphModule, example_inputs: Sequence[object], forward: Any, backward: Any, inference: Any
) -> Callable[..., object]:
    compiled: Callable[..., object] = aot_module_simplified(
        module,
        example_inputs,
        fw_compiler=forward,
        bw_compiler=backward,
        inference_compiler=inference,
        partition_fn=partition,
        keep_inference_input_mutations=True,
    )
    return compiled


def _plain(graph: fx.GraphModule, _: Sequence[object]) -> Callable[[list[object]], Any]:
    program = FxProgram(graph)

    def run(args: list[object]) -> Any:
        return program.run(args)

    run._boxed_call = True  # type: ignore[attr-defined]
    return run


def open_output_count(graph: fx.GraphModule) -> int:
    """How many outputs of a forward graph the user gets; all of them when AOT Autograd does not say."""
    context = torch._guards.TracingContext.try_get()
    metadata = context.fw_metadata if context is not None else None
    count = getattr(metadata, "num_forward_returns", None)
    return output_count(graph) if count is None else int(count)


def output_count(graph: fx.GraphModule) -> int:
    (output,) = [node for node in graph.graph.nodes if node.op == "output"]
    return len(output.args[0]) if isinstance(output.args[0], tuple | list) else 1
