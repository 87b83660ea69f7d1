"""A front end of a few lines: a list of Python functions, run by the one watched loop."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from msdump.graph.graph import Graph, Parameter, Value
from msdump.graph.primitive import REGISTRY, Primitive, def_primitive
from msdump.graph.run import Calls, ObservedGraph, Observer
from msdump.graph.types import TensorType
from msdump.tensors.arrays import Array

SHAPE = (4,)
_FLOATS = TensorType("float32", SHAPE)


class ToyError(Exception):
    pass


@contextlib.contextmanager
def registered() -> Iterator[None]:
    """The primitives of the program are known inside."""
    def_primitive("Toy", ("x",))
    def_primitive("ToyAssign", ("w", "x"), mutates=(0,), aliases={0: 0})
    yield
    del REGISTRY["Toy"], REGISTRY["ToyAssign"]


@dataclass(frozen=True)
class ToyCall:
    """`function` makes the output of the inputs; one that assigns returns its first input, which it has written."""

    name: str
    function: Callable[..., Array]
    inputs: tuple[str, ...]
    assigns: bool = False


def _add_to(w: Array, x: Array) -> Array:
    w += x
    return w


def _checked(x: Array) -> Array:
    if x[0] > 0:
        raise ToyError("the first element is positive")
    if np.isnan(x[0]):
        raise KeyboardInterrupt
    return x - 1


# What is called "name" is the output of that call; x is the input, w the parameter.
CALLS = (
    ToyCall("double", lambda x: x + x, ("x",)),
    ToyCall("grow", np.exp, ("double",)),
    ToyCall("collect", _add_to, ("w", "double"), assigns=True),
    ToyCall("check", _checked, ("x",)),
    ToyCall("last", np.negative, ("w",)),
)


class ToyProgram:
    """The calls as a graph that observers know. Runs have the numbers 0, 1...

    arrays  weak references to every array that the last run made or was given
    """

    def __init__(self, observers: Sequence[Observer]) -> None:
        graph = self.graph = Graph()
        self.w = np.zeros(SHAPE, np.float32)
        self.values = {
            "x": graph.add_input("x", _FLOATS),
            "w": graph.add_parameter(Parameter("w", self.w, "float32")),
        }
        for call in CALLS:
            inputs = [self.values[name] for name in call.inputs]
            primitive = Primitive("ToyAssign" if call.assigns else "Toy")
            self.values[call.name] = graph.add_foreign_node(primitive, inputs, [_FLOATS], call.name).outputs[0]
        graph.outputs = [self.values["last"]]
        graph.number()
        self.seen = ObservedGraph(graph, observers)
        self.arrays: list[weakref.ref[Array]] = []
        self._iterations = itertools.count()

    def run(self, x: Sequence[float]) -> bytes:
        """Raises: ToyError where the first element is positive, KeyboardInterrupt where it is NaN."""
        run = _ToyRun(self, np.array(x, np.float32))
        watched = self.seen.begin(next(self._iterations))
        with np.errstate(all="ignore"):
            if watched is not None:
                watched.run(run)
            else:
                for number in range(len(CALLS)):
                    run.launch(number)
        return run.arrays["last"].tobytes()


class _ToyRun(Calls):
    def __init__(self, program: ToyProgram, x: Array) -> None:
        self.ops = program.seen.ops
        self.arrays: dict[str, Array] = {"x": x, "w": program.w}
        self._names = {value.id: name for name, value in program.values.items()}
        self._refs = program.arrays
        self._refs[:] = [weakref.ref(x)]

    def launch(self, number: int) -> None:
        call = CALLS[number]
        result = call.function(*(self.arrays[name] for name in call.inputs))
        self.arrays[call.name] = result
        if not call.assigns:
            self._refs.append(weakref.ref(result))

    def inputs(self, number: int) -> Sequence[Array]:
        return [self.arrays[name] for name in CALLS[number].inputs]

    def outputs(self, number: int) -> Sequence[Array]:
        return [self.arrays[CALLS[number].name]]

    def array(self, value: Value) -> Array:
        return self.arrays[self._names[value.id]]

    def failed_outputs(self, number: int) -> Sequence[Array]:
        return [np.empty((0,), np.float32)]

    def protect(self, number: int) -> Collection[int]:
        op = self.ops[number]
        return () if op is None else {op.inputs[0].key.value_id}
