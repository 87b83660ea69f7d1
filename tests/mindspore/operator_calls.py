"""Every call of an operator that the tests know, of all operators in one form.

`tests/mindspore/kernels/cases*.py` give operands and attributes, `declared_cases.py` the arguments of a function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from msdump import mindspore as ms
from msdump.mindspore.ops.declaration import DECLARATIONS
from msdump.tensors.arrays import Array
from tests.mindspore import declared_cases
from tests.mindspore.kernels.cases import CASES

Operation = tuple[list[Any], dict[str, Any]]


@dataclass(frozen=True)
class Call:
    """One call.

    arrays     its operands; other arrays may take their places
    operation  operands and attributes of the operator for such arrays
    is_exact, has_derivative, is_smooth  as in `declared_cases.Case`
    """

    op_type: str
    arrays: tuple[Array, ...]
    operation: Callable[[Sequence[Array]], Operation]
    is_exact: bool = False
    has_derivative: bool = True
    is_smooth: bool = True


def calls_of(op_type: str) -> list[Call]:
    """All calls of an operator; [] when nobody wrote one."""
    if op_type in DECLARATIONS:
        return [_of_function(op_type, case) for case in declared_cases.cases_of(op_type)]
    return [_of_kernel(op_type, case.inputs, case.attrs) for case in CASES.get(op_type, ())]


def _of_kernel(op_type: str, arrays: Sequence[Array], attrs: Any) -> Call:
    return Call(op_type, tuple(arrays), lambda others: ([ms.Tensor.of_array(each) for each in others], dict(attrs)))


def _of_function(op_type: str, case: declared_cases.Case) -> Call:
    def operation(others: Sequence[Array]) -> Operation:
        remaining = iter(others)
        args = [_with_tensors(value, remaining) for value in case.args]
        kwargs = {name: _with_tensors(value, remaining) for name, value in case.kwargs.items()}
        return DECLARATIONS[op_type].bound(*args, **kwargs)

    arrays = tuple(_arrays([*case.args, *case.kwargs.values()]))
    return Call(op_type, arrays, operation, case.is_exact, case.has_derivative, case.is_smooth)


def _arrays(value: Any) -> Iterator[Array]:
    if isinstance(value, declared_cases.Parameter):
        yield value.value
    elif isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _arrays(item)


def _with_tensors(value: Any, remaining: Iterator[Array]) -> Any:
    if isinstance(value, declared_cases.Parameter):
        return ms.Parameter(ms.Tensor(next(remaining)), name="written")
    if isinstance(value, np.ndarray):
        return ms.Tensor.of_array(next(remaining))
    return type(value)(_with_tensors(item, remaining) for item in value) if isinstance(value, list | tuple) else value
