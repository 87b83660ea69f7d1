"""What rewritten functions call in place of `if`, `while`, `for` and expressions with conditions.

On what is known while the graph is traced they do what Python does. On a tensor that is not, they trace both branches,
or condition and body, into regions of the program.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import FunctionType
from typing import Any

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.control.join import Variables
from msdump.mindspore.control.loops import TracedRange, branch, is_traced, loop, truth
from msdump.mindspore.dispatch import call
from msdump.mindspore.tracer import current_tracer

Thunk = Callable[[], Any]


def if_(test: Any, then: FunctionType, orelse: FunctionType, names: Sequence[str]) -> None:
    """An `if` statement.   names: variables that its branches write."""
    if not is_traced(test):
        (then if test else orelse)()
    else:
        branch(test, then, orelse, Variables.of((then, orelse), names))


def choose(
    test: Any, then: FunctionType, orelse: FunctionType, names: Sequence[str], outer_names: Sequence[str]
) -> Any:
    """An `if` statement whose branches return.   outer_names: variables of functions around this one, read later"""
    if not is_traced(test):
        return (then if test else orelse)()
    functions = (then, orelse)
    return branch(test, then, orelse, Variables.of(functions, outer_names), Variables.of(functions, names))


def while_(test: Thunk, body: Thunk, names: Sequence[str], stop: str) -> None:
    """A `while` statement.   stop: variable that is true once the body has left it; "" without one"""
    loop(test, body, Variables.of((test, body), names), stop)


def for_(items: Iterable[Any], body: Callable[[Any], Any], names: Sequence[str], stop: str) -> None:
    """A `for` statement: `body` takes the item. Items that are known are unrolled."""
    variables = Variables.of((body,), names)
    if isinstance(items, TracedRange):
        items.loop(body, variables, stop)
        return
    for item in items:
        has_stopped: Any = variables.read(stop) if stop else False
        if is_traced(has_stopped):
            branch(has_stopped, _pass, partial(body, item), variables, watched=(body,))
        elif has_stopped:
            return
        else:
            body(item)


def own(thing: Any) -> Any:
    """What `thing[index] = value` writes to: in a branch or a body a tensor of its own, as the run may skip these."""
    tracer = current_tracer()
    if tracer is None or tracer.is_recording or not tracer.is_in_subgraph:
        return thing
    if not isinstance(thing, Tensor) or isinstance(thing, Parameter):
        return thing
    return tracer.tensor_of(tracer.value_of(thing))


def range_(function: Any, *args: Any) -> Any:
    """`range(...)` as the items of a `for`."""
    if function is builtins.range and any(is_traced(arg) for arg in args):
        return TracedRange(*args)
    return function(*args)


def if_expression(test: Any, then: Thunk, orelse: Thunk) -> Any:
    """`then if test else orelse`"""
    if not is_traced(test):
        return then() if test else orelse()
    return branch(test, then, orelse, Variables({}))


def and_(*operands: Thunk) -> Any:
    """`a and b and ...`: what follows a traced operand is computed only where that is true."""
    return _chain(operands, False)


def or_(*operands: Thunk) -> Any:
    """`a or b or ...`"""
    return _chain(operands, True)


def _chain(operands: Sequence[Thunk], decides: bool) -> Any:
    value: Any = None
    for number, operand in enumerate(operands):
        value = operand()
        if number == len(operands) - 1:
            return value
        if is_traced(value):
            rest = operands[number + 1 :]
            decided = truth(value)

            def others(rest: Sequence[Thunk] = rest) -> Any:
                return truth(_chain(rest, decides))

            def first(decided: Tensor = decided) -> Tensor:
                return decided

            then, orelse = (first, others) if decides else (others, first)
            return branch(decided, then, orelse, Variables({}))
        if bool(value) is decides:
            return value
    return value


def not_(value: Any) -> Any:
    """`not value`"""
    return call("LogicalNot", truth(value)) if is_traced(value) else not value


def bool_(function: Any, value: Any) -> Any:
    """`bool(value)`"""
    return truth(value) if function is bool and is_traced(value) else function(value)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "Eq": operator.eq,
    "NotEq": operator.ne,
    "Lt": operator.lt,
    "LtE": operator.le,
    "Gt": operator.gt,
    "GtE": operator.ge,
    "Is": operator.is_,
    "IsNot": operator.is_not,
    "In": lambda item, items: item in items,
    "NotIn": lambda item, items: item not in items,
}


def compare(operators: str, *operands: Thunk) -> Any:
    """`a < b < c ...`: each operand is computed once, and only where all comparisons before it are true."""
    return _compared(operators.split(), operands[0](), operands[1:])


def _compared(operators: Sequence[str], first: Any, operands: Sequence[Thunk]) -> Any:
    second = operands[0]()
    result = _OPERATORS[operators[0]](first, second)
    if len(operators) == 1:
        return result
    return and_(lambda: result, lambda: _compared(operators[1:], second, operands[1:]))


def _pass() -> None:
    """A branch without statements."""
