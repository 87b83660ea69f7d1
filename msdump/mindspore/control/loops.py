"""Conditions and numbers of runs that only the run knows, traced into an `If` or a `While` of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msdump.errors import BranchShapeError, BranchTypeError, GraphError
from msdump.graph.graph import Graph
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.control.exits import PREFIX, RESULT
from msdump.mindspore.control.join import (
    NUMBERS,
    UNBOUND,
    Join,
    Taker,
    Variables,
    as_same,
    is_internal,
    leaves,
    place,
    replaced,
    tensor_of_number,
    unchanged,
    zeros,
)
from msdump.mindspore.dispatch import call, common_dtype
from msdump.mindspore.program.regions import add_if, add_while, region_input
from msdump.mindspore.tracer import Tracer, current_tracer


def is_traced(thing: Any) -> bool:
    """Is it a tensor whose value only the run knows? A parameter is one while a graph is traced."""
    if not isinstance(thing, Tensor):
        return False
    if isinstance(thing, Parameter):
        tracer = current_tracer()
        return tracer is not None and not tracer.is_recording
    return not thing.is_concrete


def condition(thing: Any) -> Tensor:
    """A tensor as a condition.   Raises: BranchShapeError when it has not one element."""
    if thing.shape not in ((), (1,)):
        raise BranchShapeError(
            f"{place()}: Only tensor which shape is () or (1,) can be converted to bool, but got tensor shape is "
            f"{thing.shape}. Use x.any() or x.all()."
        )
    tensor: Tensor = thing
    return tensor


def truth(thing: Any) -> Any:
    """A bool for a Python object, a bool tensor of shape () for a traced one."""
    if not is_traced(thing):
        return bool(thing)
    tensor = condition(thing)
    if tensor.type_.dtype != "bool":
        tensor = call("Cast", tensor, dtype="bool")
    return call("Reshape", tensor, shape=()) if tensor.shape else tensor


def branch(
    test: Tensor, then: Callable[[], Any], orelse: Callable[[], Any], variables: Variables,
    forgotten: Variables | None = None, watched: Sequence[Callable[..., Any]] = (),
) -> Any:  # fmt: skip
    """Trace both functions; what they return and leave in variables is that of the one which runs.

    forgotten  variables that they write and nobody reads afterwards
    watched    functions whose surroundings must not change; these two unless others are given
    Raises: BranchTypeError, BranchShapeError, GraphError, each with the line of the script.
    """
    tracer = current_tracer()
    assert tracer is not None
    where = place()
    value = tracer.value_of(condition(test))
    written = forgotten or variables
    before = written.read_all()
    outcomes, regions = [], []
    for function in (then, orelse):
        written.write_all(before)
        with tracer.region() as region, unchanged(watched or (then, orelse), where):
            returned = function()
        outcomes.append({"": returned, **variables.read_all()})
        regions.append(region)
    join = Join(where)
    joined = {name: _joined(tracer, join, name, outcomes) for name in outcomes[0]}
    for side, region in enumerate(regions):
        with tracer.region(region):
            region.outputs = [tracer.value_of(pair[side]) for pair in join.pairs]
    node = add_if(tracer.graph, value, regions[0], regions[1], *tracer.position())
    node.has_mark = tracer.is_marking
    tensors = iter([tracer.tensor_of(output) for output in node.outputs])
    results = {name: take(tensors) for name, take in joined.items()}
    result = results.pop("")
    written.write_all(before)
    variables.write_all(results)
    return result


def _joined(tracer: Tracer, join: Join, name: str, outcomes: Sequence[dict[str, Any]]) -> Taker:
    """As `Join.join`; a variable that cannot be joined has no value afterwards, which is an error where it is read."""
    first, second = (outcome[name] for outcome in outcomes)
    if not is_internal(name) and (first is UNBOUND) != (second is UNBOUND):
        without, having = ("true", "false") if first is UNBOUND else ("false", "true")
        tracer.unbound[name] = UnboundLocalError(
            f"{join.where}: The local variable '{name}' is not defined in {without} branch, but defined in {having} "
            "branch. Give it a value before."
        )
        return lambda _: UNBOUND
    count = len(join.pairs)
    try:
        return join.join(name, first, second)
    except (BranchTypeError, BranchShapeError) as error:
        if not name or is_internal(name):
            raise
        del join.pairs[count:]
        tracer.unbound[name] = error
        return lambda _: UNBOUND


_INDEX = PREFIX + "index"


def loop(test: Callable[[], Any], body: Callable[[], Any], variables: Variables, stop: str) -> None:
    """Run a loop as Python does until what decides on its end is traced; the rest becomes one of the program."""
    tracer = current_tracer()
    while True:
        has_stopped = variables.read(stop) if stop else False
        if not is_traced(has_stopped) and has_stopped:
            return
        if tracer is None or tracer.is_recording:
            decides: Any = test()
        else:
            # Only a trial: the loop's condition is traced once more, into a region of its own.
            with tracer.region():
                decides = test()
        if tracer is not None and (is_traced(decides) or is_traced(has_stopped)):
            _TracedLoop(tracer, test, body, variables, stop).trace()
            return
        if not decides:
            return
        body()


class TracedRange:
    """`range` of numbers that only the run knows."""

    def __init__(self, first: Any, last: Any = None, step: Any = 1) -> None:
        """Raises: GraphError for a step that is not known while the graph is traced; ValueError for the step 0."""
        self._first: Any = 0 if last is None else first
        self._last: Any = first if last is None else last
        self._step = step
        if not isinstance(self._step, int):
            raise GraphError(f"{place()}: range: expected a step that is an int, got {type(self._step).__name__}.")
        if self._step == 0:
            raise ValueError("range() arg 3 must not be zero")
        for each in (self._first, self._last):
            if isinstance(each, Tensor) and (each.shape not in ((), (1,)) or "int" not in each.type_.dtype):
                raise BranchTypeError(f"{place()}: range: expected integers, got {each.dtype} of shape {each.shape}.")

    def loop(self, body: Callable[[Any], Any], variables: Variables, stop: str) -> None:
        """Run `body` for each number."""
        ends = [end.reshape(()) if isinstance(end, Tensor) else end for end in (self._first, self._last)]
        kinds = [end.type_.dtype for end in ends if isinstance(end, Tensor)]
        dtype = common_dtype(kinds[0], kinds[-1])
        first, last = (end if isinstance(end, int) else end.astype(dtype, copy=False) for end in ends)
        if isinstance(first, int):
            first = tensor_of_number(first).astype(dtype, copy=False)
        inner = variables.with_cell(_INDEX, first)

        def test() -> Any:
            index = inner.read(_INDEX)
            return index < last if self._step > 0 else index > last

        def run() -> None:
            index = inner.read(_INDEX)
            body(index)
            inner.write(_INDEX, index + self._step)

        tracer = current_tracer()
        assert tracer is not None
        _TracedLoop(tracer, test, run, inner, stop, body).trace()


class _TracedLoop:
    """One loop while it is traced. What it carries is settled by tracing until it does not change any more."""

    def __init__(
        self, tracer: Tracer, test: Callable[[], Any], body: Callable[[], Any], variables: Variables, stop: str,
        watched: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        self._tracer = tracer
        self._test, self._body = test, body
        self._variables = variables
        self._stop = stop
        self._watched = watched or body
        self._where = place()
        self._before = variables.read_all()
        # Numbers that the body changes, and so are carried as tensors: name and place in the variable.
        self._changing: set[tuple[str, int]] = set()

    def trace(self) -> None:
        """Raises: BranchTypeError, BranchShapeError, GraphError, each with the line of the script."""
        tracer = self._tracer
        is_settled = False
        while not is_settled:
            carried = {name: self._started(name) for name, value in self._before.items() if value is not UNBOUND}
            body, after = self._traced_body(carried)
            is_settled = not self._changes(carried, after)
        values = [tracer.value_of(tensor) for start in carried.values() for tensor in _tensors(start)]
        with tracer.region(body):
            for name, start in carried.items():
                pairs = zip(leaves(start), leaves(after[name]), strict=True)
                ends = [as_same(name, new, old) for old, new in pairs if isinstance(old, Tensor)]
                body.outputs += [tracer.value_of(end) for end in ends]
        condition_region, stop = self._traced_condition(carried)
        node = add_while(tracer.graph, condition_region, body, values, stop, *tracer.position())
        node.has_mark = tracer.is_marking
        self._bind(carried, iter([tracer.tensor_of(value) for value in node.outputs]))
        for name in self._before.keys() - carried.keys():
            self._variables.write(name, UNBOUND)
            tracer.unbound.setdefault(name, self._unbound(name))

    def _unbound(self, name: str) -> Exception:
        return UnboundLocalError(
            f"{self._where}: the variable '{name}' gets its first value in a loop on a tensor's value, which may not "
            "run at all. Give it a value before."
        )

    def _started(self, name: str) -> Any:
        """What a variable holds at the start, with tensors for the numbers that change."""
        value = self._before[name]
        parts = [
            tensor_of_number(leaf) if isinstance(leaf, NUMBERS) and (name, index) in self._changing else leaf
            for index, leaf in enumerate(leaves(value))
        ]
        return replaced(value, iter(parts))

    def _bind(self, carried: dict[str, Any], tensors: Any) -> None:
        """Let the variables hold other tensors in place of those that are carried."""
        for name, start in carried.items():
            parts = [next(tensors) if isinstance(leaf, Tensor) else leaf for leaf in leaves(start)]
            self._variables.write(name, replaced(start, iter(parts)))

    def _enter(self, region: Graph, carried: dict[str, Any]) -> None:
        starts = [tensor for start in carried.values() for tensor in _tensors(start)]
        inputs = [region_input(region, tensor.type_) for tensor in starts]
        self._bind(carried, iter([self._tracer.tensor_of(value) for value in inputs]))

    def _traced_body(self, carried: dict[str, Any]) -> tuple[Graph, dict[str, Any]]:
        with self._tracer.region() as region, unchanged((self._watched,), self._where):
            self._enter(region, carried)
            for name, value in self._before.items():
                if value is UNBOUND:
                    self._variables.write(name, UNBOUND)
            self._body()
        return region, self._variables.read_all()

    def _changes(self, carried: dict[str, Any], after: dict[str, Any]) -> bool:
        """Whether a trace of the body says that something else is to be carried: numbers that it changes, what it
        returns; not what it leaves as another kind of thing, which then must not be read before it is assigned."""
        is_changed = False
        for name, value in after.items():
            if name in carried:
                is_changed |= self._changes_number(name, value) or self._drops(name, carried[name], value)
            elif name == RESULT and value is not UNBOUND:
                self._before[name] = zeros(value)
                is_changed = True
        return is_changed

    def _changes_number(self, name: str, value: Any) -> bool:
        count = len(self._changing)
        for index, (one, other) in enumerate(zip(leaves(self._before[name]), leaves(value), strict=False)):
            if isinstance(one, NUMBERS):
                is_tensor = isinstance(as_same(name, one, other), Tensor)
                if is_tensor or (type(one) is type(other) and one != other):
                    self._changing.add((name, index))
        return len(self._changing) > count

    def _drops(self, name: str, start: Any, value: Any) -> bool:
        """Raises: BranchTypeError, BranchShapeError for variables that the loop cannot do without."""
        error: Exception = self._tracer.unbound.get(name) or self._unbound(name)
        if value is not UNBOUND:
            try:
                Join(self._where).join(name, start, value)
            except (BranchTypeError, BranchShapeError) as reason:
                if is_internal(name):
                    raise
                error = reason
            else:
                return False
        self._tracer.unbound[name] = error
        self._before[name] = UNBOUND
        return True

    def _traced_condition(self, carried: dict[str, Any]) -> tuple[Graph, int]:
        with self._tracer.region() as region:
            self._enter(region, carried)
            test = self._test()
            tensor = condition(test) if is_traced(test) else tensor_of_number(bool(test))
            region.outputs = [self._tracer.value_of(tensor)]
        places = [name for name, start in carried.items() for _ in _tensors(start)]
        return region, places.index(self._stop) if self._stop in places else -1


def _tensors(thing: Any) -> list[Tensor]:
    return [leaf for leaf in leaves(thing) if isinstance(leaf, Tensor)]
