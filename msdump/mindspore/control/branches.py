"""Both branches of a condition that only the run knows, traced into an `If` of the program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msdump.errors import BranchShapeError, BranchTypeError
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.control.join import UNBOUND, Join, Taker, is_internal, place
from msdump.mindspore.control.variables import Variables, unchanged
from msdump.mindspore.dispatch import call
from msdump.mindspore.program.regions import add_if
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
    test: Tensor,
    then: Callable[[], Any],
    orelse: Callable[[], Any],
    variables: Variables,
    forgotten: Variables | None = None,
    watched: Sequence[Callable[..., Any]] = (),
) -> Any:
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
