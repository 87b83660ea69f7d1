"""The backend that `torch.compile(model, backend="msdump-inductor")` names: Inductor's kernels, with taps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import torch
from torch import fx
from torch._inductor import list_mode_options
from torch._inductor.compile_fx import compile_fx, compile_fx_inner

from msdump.engine import opening
from msdump.errors import GraphError
from msdump.frontends.torch import outside
from msdump.frontends.torch.compiled_graph import open_output_count, output_count
from msdump.frontends.torch.graph_from_fx import BACKWARD, FORWARD, INFERENCE
from msdump.frontends.torch.places import drop_wrapper, input_names
from msdump.frontends.torch.runner import CompiledModel, GraphRunner
from msdump.frontends.torch.session import open_session

if TYPE_CHECKING:
    from torch._inductor.utils import InputType

# A captured CUDA graph would not run what a tap does; freezing drops the parameters that are to be shown.
_ALWAYS = {"triton.cudagraphs": False, "freezing": False}


def compile_with_inductor(
    module: fx.GraphModule,
    example_inputs: Sequence[object],
    *,
    mode: str | None = None,
    options: Mapping[str, object] | None = None,
) -> Callable[..., object]:
    """Compile a captured graph as Inductor does; the operators that are dumped write their tensors to memory.

    mode, options  as `torch.compile` takes them for Inductor
    Edges:  without a configuration this is Inductor itself.
    Raises: as `opening.open_mindspore`; what Inductor raises; GraphError where Inductor took what it had compiled
            before, without taps.
    """
    opening.call_when_sessions_change(torch._dynamo.reset)
    patches = {**(list_mode_options(mode) if mode else {}), **(options or {})}
    # It may return other things where it compiles ahead of time, which `torch.compile` does not ask for.
    inductor = cast(Callable[..., Callable[..., object]], compile_fx)
    session = open_session(example_inputs, is_compiled_only=True)
    if session is None:
        return inductor(module, example_inputs, config_patches=patches or None)
    outside.note_compilation()
    drop_wrapper(module)
    model = CompiledModel(session, input_names(module), example_inputs, torch.is_grad_enabled())
    runners = []

    def compile_inner(graph: fx.GraphModule, inputs: Sequence[InputType], **settings: Any) -> GraphRunner:
        is_backward, is_inference = settings.get("is_backward", False), settings.get("is_inference", False)
        stage = BACKWARD if is_backward else INFERENCE if is_inference else FORWARD
        count = output_count(graph)

        def compile_tapped(tapped: fx.GraphModule) -> Callable[[list[object]], Any]:
            kernels: Callable[[list[object]], Any] = compile_fx_inner(tapped, inputs, **settings)
            _forget_strides(count)
            return kernels

        open_outputs = open_output_count(graph) if stage == FORWARD else count
        runners.append(GraphRunner(graph, model, stage, open_outputs, compile_tapped))
        return runners[-1]

    # What these caches hold was compiled without taps.
    with torch._functorch.config.patch(enable_autograd_cache=False):
        compiled = inductor(module, example_inputs, inner_compile=compile_inner, config_patches={**patches, **_ALWAYS})
    if not runners:
        raise GraphError(
            f"msdump-inductor: expected Inductor of PyTorch {torch.__version__} to compile the graph, got one "
            "from a cache, without taps. Set TORCHINDUCTOR_AUTOGRAD_CACHE=0, or use the backend msdump."
        )
    return outside.counted(compiled)


def _forget_strides(count: int) -> None:
    """AOT Autograd counts the outputs with given strides from the end: the taps' output is not among them."""
    context = torch._guards.TracingContext.try_get()
    strides = None if context is None else context.output_strides
    if strides is not None:
        del strides[count:]
