"""GraphRunner: the function that AOT Autograd calls for one of a model's graphs; CompiledModel: what these share."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from msdump.frontends.torch.convert import has_symbols, sizes_of
from msdump.frontends.torch.device import PinnedCopies, copies_for
from msdump.frontends.torch.freed_memory import keep_freed_memory
from msdump.frontends.torch.graph_from_fx import (
    BACKWARD,
    FORWARD,
    CaptureInfo,
    FxGraph,
    graph_from_fx,
    producer_of,
)
from msdump.frontends.torch.graph_iterations import iterations_of
from msdump.frontends.torch.observed_program import ObservedFxProgram
from msdump.frontends.torch.outside import gaps
from msdump.frontends.torch.program import FxProgram
from msdump.frontends.torch.shardings import sharding_book
from msdump.frontends.torch.steps import ForwardRuns
from msdump.frontends.torch.taps import Inner, ObservedTaps, TappedProgram, taps_of
from msdump.graph.graph import INPUT, PARAMETER, SAVED
from msdump.process.sessions import lock

if TYPE_CHECKING:
    from msdump.config.plan import Plan
    from msdump.engine.graphs import GraphSession
    from msdump.formats.sharding_json import TensorSharding


log = logging.getLogger("msdump")

# A backward may come long after its forward run.
_MAX_ITERATIONS = 1024


@dataclass(slots=True)
class ModelInput:
    """One input of a graph that Dynamo captured, as AOT Autograd hands it to its graphs.

    name      as the script has it; "" for what is no tensor
    sharding  where it is known
    """

    name: str
    is_parameter: bool
    sharding: TensorSharding | None = None


class CompiledModel:
    """One graph that Dynamo captured: its forward or inference graph, and its backward graph.

    inputs         (name, whether it is a parameter) of each input
    examples       the arguments with which it is captured, which tell which of them are cut over several processes
    has_gradients  the gradient mode that it was captured in
    code           what all graphs have in common that are made of the same part of the same code
    link           name of the tensor that leads from a backward run to its forward run
    """

    def __init__(
        self,
        session: GraphSession,
        inputs: Sequence[tuple[str, bool]],
        examples: Sequence[object],
        has_gradients: bool,
    ) -> None:
        self.session = session
        self.iterations = iterations_of(session)
        self.code = _code_that_is_compiled(self)
        self.has_gradients = has_gradients
        self.runs = ForwardRuns()
        self.link: str | None = None
        self.forward: FxGraph | None = None
        self._inputs = [ModelInput(name, is_parameter) for name, is_parameter in inputs]
        if len(examples) == len(inputs):
            self._inputs = [
                part
                for own, example in zip(self._inputs, examples, strict=True)
                for part in _parts(replace(own, sharding=sharding_book(session).sharding(example)), example)
            ]

    def shardings_of(self, placeholders: Sequence[fx.Node], args: Sequence[object]) -> dict[fx.Node, TensorSharding]:
        """What is known of the arguments of one of its graphs, which runs for the first time."""
        book = sharding_book(self.session)
        if not book.is_on:
            return {}
        book.note_all_models()
        found: dict[fx.Node, TensorSharding] = {}
        for node, arg in zip(placeholders, args, strict=True):
            own = self._input_of(node.name)
            if own is not None:
                # What was saved for the backward need not be the same object.
                own.sharding = own.sharding or book.sharding(arg)
                if own.sharding is not None:
                    found[node] = own.sharding
        return found

    def weights_in(self, placeholders: Sequence[fx.Node], args: Sequence[object]) -> list[object]:
        """Those of the arguments of one of its graphs that are parameters and buffers."""
        found = ((self._input_of(node.name), arg) for node, arg in zip(placeholders, args, strict=True))
        return [arg for own, arg in found if own is not None and own.is_parameter]

    def origin(self, placeholders: Sequence[fx.Node], stage: str, open_outputs: int) -> CaptureInfo:
        """How the placeholders of one of its graphs are shown."""
        names: dict[str, tuple[str, str]] = {}
        for node in placeholders:
            own = self._input_of(node.name)
            name, is_parameter = (node.name, False) if own is None else (own.name, own.is_parameter)
            if stage != BACKWARD:
                names[node.name] = (name, PARAMETER if is_parameter else INPUT)
            else:
                names[node.name] = (name, INPUT if node.name.startswith("tangents_") else SAVED)
        if stage != BACKWARD or self.forward is None:
            return CaptureInfo(stage, names, open_outputs, frozenset(names))
        forward = self.forward
        safe = {
            node.name
            for node, path in ((node, producer_of(node)) for node in forward.by_name.values())
            if path in forward.values and forward.values[path].id in forward.graph.held
        }
        return CaptureInfo(
            stage, names, open_outputs, frozenset(names) - safe, forward.by_seq_nr, self._gradients(forward)
        )

    def _gradients(self, forward: FxGraph) -> list[tuple[str, tuple[int, ...]] | None]:
        """Whose gradients the outputs of the backward graph are.   Source: AOT Autograd returns one for each input."""
        inputs = (*forward.graph.parameters, *forward.graph.inputs)
        shapes = {value.name: tuple(value.type.shape) for value in inputs}
        return [(each.name, shapes[each.name]) if each.name in shapes else None for each in self._inputs]

    def _input_of(self, placeholder: str) -> ModelInput | None:
        """What a placeholder is.

        Source: AOT Autograd names inputs `primals_1`... when it trains and `arg0_1`... when it does not.
        """
        if placeholder.startswith("primals_"):
            index = int(placeholder.removeprefix("primals_")) - 1
        elif placeholder.startswith("arg") and placeholder.endswith("_1"):
            index = int(placeholder[3:-2])
        else:
            return None
        return self._inputs[index] if index < len(self._inputs) else None


# How many graphs were made of a code by now, by what stands for its compilation.
_graph_counts: weakref.WeakKeyDictionary[torch._guards.CompileContext, int] = weakref.WeakKeyDictionary()


def _code_that_is_compiled(model: CompiledModel) -> Hashable:
    """Number of the code that Dynamo compiles now, and of the graph among those that it makes of it.

    Source: PyTorch, `CompileId`; `DDPOptimizer` cuts what was captured into several graphs.
    """
    context = torch._guards.CompileContext.try_get()
    own = None if context is None else context.compile_id
    if context is None or own is None or own.frame_id is None:
        return model
    number = _graph_counts[context] = _graph_counts.get(context, 0) + 1
    return own.frame_id, number


def _parts(whole: ModelInput, example: object) -> list[ModelInput]:
    """The arguments that an input is: AOT Autograd hands what is inside of a tensor of a subclass to its graphs.

    A tensor alone inside has its name, as that of a DTensor has.
    """
    if not is_traceable_wrapper_subclass(example):
        return [whole]
    inside = {name: getattr(example, name) for name in example.__tensor_flatten__()[0]}
    is_alone = sum(isinstance(part, torch.Tensor) for part in inside.values()) == 1
    parts: list[ModelInput] = []
    for name, part in inside.items():
        if not isinstance(part, torch.Tensor):
            parts.append(ModelInput("", False))
        else:
            parts += _parts(whole if is_alone else replace(whole, name=f"{whole.name}.{name}"), part)
    return parts


class GraphRunner:
    """One graph of AOT Autograd. Called with a list of arguments, which it empties.

    open_outputs  how many of the first outputs go to the user; the others are saved for the backward graph
    inner         compiles what no operator is looked at in; None: operators run one by one
    """

    def __init__(
        self, module: fx.GraphModule, model: CompiledModel, stage: str, open_outputs: int, inner: Inner | None = None
    ) -> None:
        # Of the instance: PyTorch wraps it in a function, to which it copies nothing else.
        self._boxed_call = True
        self._module = module
        self._model = model
        self._stage = stage
        self._open_outputs = open_outputs
        self._inner = inner
        self._plan = model.session.plan
        self._tap_graph: FxGraph | None = None
        self._program = FxProgram(module) if inner is None else self._tapped(inner)
        self._has_symbols = has_symbols(self._program.placeholders)
        self._seen: dict[Hashable, ObservedFxProgram | ObservedTaps] = {}
        # Of the last iterations: how often it ran.
        self._runs: dict[int, int] = {}
        self._copies: PinnedCopies | None = None
        link = self._link()
        self._linked_at = None if link is None else link[1]
        if link is not None:
            model.link = link[0]

    def __call__(self, args: list[object]) -> Any:
        if not self._model.session.may_dump() or self._model.session.has_ended:
            return self._program.run(args)
        if self._stage == BACKWARD:
            gaps.stop()
        return self._run(args)

    def _run(self, args: list[object]) -> Any:
        watched = None
        # Backward graphs of CUDA models run in a thread of autograd's, and scripts have threads of their own.
        with lock:
            iteration = self._iteration(args)
            seen = None if iteration is None else self._seen_in(iteration, args)
            if seen is not None and iteration is not None:
                watched = seen.seen.begin(iteration)
                if watched is not None:
                    session = self._model.session
                    outputs = seen.run(
                        watched, args, self._copies, session.count_skipped, measures_only=session.plan.measures_only
                    )
        if watched is None:
            outputs = self._program.run(args)
        if self._linked_at is not None and iteration is not None:
            with lock:
                self._model.runs.add(outputs[self._linked_at].data_ptr(), iteration)
        return outputs

    def _seen_in(self, iteration: int, args: list[object]) -> ObservedFxProgram | ObservedTaps | None:
        """The graph that it is in this iteration; None where it runs once more in one that is not dumped."""
        plan = self._model.session.plan
        if self._plan is not plan:
            self._take_plan(plan)
        repetition = self._repetition(iteration)
        return None if repetition and not plan.watches(iteration) else self._observed(args, repetition)

    def _link(self) -> tuple[str, int] | None:
        """Name and index, among the outputs, of the first tensor that is computed here and saved for the backward."""
        if self._stage != FORWARD:
            return None
        (output,) = [node for node in self._module.graph.nodes if node.op == "output"]
        saved = list(enumerate(output.args[0]))[self._open_outputs :]
        return next(((item.name, index) for index, item in saved if _is_computed(item)), None)

    def _iteration(self, args: list[Any]) -> int | None:
        model = self._model
        if self._stage != BACKWARD:
            weights = model.weights_in(self._program.placeholders, args)
            return model.iterations.forward(model, model.code, args, weights, model.has_gradients)
        latest = model.iterations.backward(model)
        for node, arg in zip(self._program.placeholders, args, strict=True):
            if node.name == model.link:
                iteration = model.runs.find(arg.data_ptr())
                return latest if iteration is None else iteration
        return latest

    def _repetition(self, iteration: int) -> int:
        """How often it has run in that iteration before, as where gradients are accumulated."""
        count = self._runs.pop(iteration, 0)
        self._runs[iteration] = count + 1
        if len(self._runs) > _MAX_ITERATIONS:
            del self._runs[next(iter(self._runs))]
        return count

    def _observed(self, args: list[object], repetition: int) -> ObservedFxProgram | ObservedTaps:
        """The graph for the shapes of these arguments, which observers get to know when it is new.

        Each repetition in an iteration is a graph of its own, so that its files have names of their own.
        """
        sizes = sizes_of(self._program.placeholders, args) if self._has_symbols else {}
        signature = repetition, frozenset(sizes.items())
        cached = self._seen.get(signature)
        if cached is not None:
            return cached
        model = self._model
        origin = model.origin(self._program.placeholders, self._stage, self._open_outputs)
        fx_graph = graph_from_fx(self._module, sizes, model.iterations.steps.take_graph_id(), origin)
        if self._stage == FORWARD:
            model.forward = fx_graph
        for reason, count in fx_graph.skipped.items():
            model.session.count_skipped(reason, count)
        shardings = model.shardings_of(self._program.placeholders, args)
        sharding_book(model.session).note_compiled(fx_graph, shardings)
        if repetition:
            model.iterations.note_repeated(len(fx_graph.graph.nodes))
        elif self._seen:
            log.info("graph %d: the model ran with new shapes.", fx_graph.graph.graph_id)
        if self._copies is None:
            self._copies = copies_for(args)
        if self._copies is not None:
            # What observers get of a device are copies already.
            fx_graph.graph.held, fx_graph.graph.borrowed = set(fx_graph.roots), set()
        elif any(observer.needs_all_values for observer in model.session.observers):
            keep_freed_memory()
        observers = model.session.observers
        seen = self._seen[signature] = (
            ObservedFxProgram(self._program, fx_graph, observers)
            if isinstance(self._program, FxProgram)
            else ObservedTaps(self._program, fx_graph, observers)
        )
        return seen

    def _tapped(self, inner: Inner) -> TappedProgram:
        """Which operators are selected is known by their names, which shapes do not change."""
        model, placeholders = self._model, [node for node in self._module.graph.nodes if node.op == "placeholder"]
        fx_graph = graph_from_fx(self._module, {}, 0, model.origin(placeholders, self._stage, self._open_outputs))
        if self._stage == FORWARD:
            model.forward = fx_graph
        self._tap_graph = fx_graph
        selected = self._selected(fx_graph)
        return TappedProgram(self._module, selected, taps_of(fx_graph, selected), inner)

    def _take_plan(self, plan: Plan) -> None:
        """The session has another plan: where it selects other operators, the graph is compiled with taps there."""
        self._plan = plan
        fx_graph = self._tap_graph
        if fx_graph is None or self._inner is None or not isinstance(self._program, TappedProgram):
            return
        selected = self._selected(fx_graph)
        if selected != self._program.selected:
            self._program = TappedProgram(self._module, selected, taps_of(fx_graph, selected), self._inner)
            for seen in self._seen.values():
                assert isinstance(seen, ObservedTaps)
                seen.use(self._program)

    def _selected(self, fx_graph: FxGraph) -> list[fx.Node]:
        masks = self._plan.masks([node.full_name for node in fx_graph.nodes.values()])
        return [call for call, mask in zip(fx_graph.nodes, masks, strict=True) if mask]


def _is_computed(item: object) -> bool:
    return isinstance(item, fx.Node) and producer_of(item)[0].op == "call_function" and _is_nonempty(item)


def _is_nonempty(node: fx.Node) -> bool:
    value = node.meta.get("val")
    is_empty = any(isinstance(size, int) and size == 0 for size in getattr(value, "shape", ()))
    return isinstance(value, torch.Tensor) and value.layout is torch.strided and not is_empty
