"""What every operator of the registry promises, on operands like those of its known calls: other dtypes, shapes that
are empty or have more axes, other and special values.

The shape rule, both libraries' kernels and both modes agree, or all of them refuse; gradients are finite differences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from msdump import mindspore as ms  # noqa: E402
from msdump.errors import GraphError  # noqa: E402
from msdump.graph.primitive import REGISTRY, choose_providers  # noqa: E402
from msdump.graph.types import TensorType  # noqa: E402
from msdump.mindspore import ops  # noqa: E402
from msdump.mindspore.dispatch import execute  # noqa: E402
from msdump.mindspore.kernels import torch_operator  # noqa: E402
from msdump.mindspore.ops.declaration import DECLARATIONS  # noqa: E402
from msdump.tensors import dtypes  # noqa: E402
from msdump.tensors.arrays import Array  # noqa: E402
from msdump.tensors.torch_arrays import dtype_name, tensor_of  # noqa: E402
from msdump.testing.strategies import operands_like  # noqa: E402
from tests.mindspore.declared_cases import CASES  # noqa: E402
from tests.mindspore.kernels import cases, cases_draws  # noqa: E402, F401  (the first gathers the others)
from tests.mindspore.kernels.interpreter import type_of  # noqa: E402
from tests.mindspore.operator_calls import Call, calls_of  # noqa: E402

# Operators that no test of one process on operands of its own can call.
NOT_CALLED = {"Send": "takes two processes", "Receive": "takes two processes"}
# Operands of their calls go together, so that other values have results that depend on the library.
NOT_COMPARED = {"MaxPoolGrad": "the operands are a pooling and its result"}
# Gradients of gradients join the registry when a test first needs them.
OPERATORS = frozenset(REGISTRY)
RUNS = [
    pytest.param([call], id=f"{name}-{n}") for name in sorted(DECLARATIONS) for n, call in enumerate(calls_of(name))
]
RUNS += [pytest.param(calls_of(name), id=name) for name in sorted(set(REGISTRY) - set(DECLARATIONS) - set(NOT_CALLED))]
# Both libraries add in an order of their own: some units in the last place of what was added.
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 5e-5, "complex64": 5e-5, "float16": 5e-3, "bfloat16": 4e-2}


@pytest.fixture(autouse=True)
def default_mode() -> Iterator[None]:
    mode = ms.get_context("mode")
    yield
    choose_providers("auto")
    ms.set_context(mode=mode)


def test_every_operator_has_a_call() -> None:
    assert {op_type for op_type in OPERATORS if not calls_of(op_type)} == set(NOT_CALLED)


@pytest.mark.parametrize("calls", RUNS)
@settings(max_examples=2)
@given(data=st.data())
def test_all_ways_agree(calls: Sequence[Call], data: st.DataObject) -> None:
    call = data.draw(st.sampled_from(calls))
    # Those without attributes work element by element.
    is_elementwise = call.op_type in DECLARATIONS and call.op_type not in CASES
    arrays = data.draw(operands_like(call.arrays, is_special=is_elementwise))
    definition = REGISTRY[call.op_type]
    try:
        operands, attrs = call.operation(arrays)
        types = None if definition.infer is None else definition.infer([each.type_ for each in operands], attrs)
    except (GraphError, TypeError, ValueError):
        return
    results = []
    for provider in definition.kernels:
        choose_providers(provider)
        results.append(computed(call, arrays))
    for other in results[1:] if call.op_type not in NOT_COMPARED else ():
        assert_close(results[0], other, call.is_exact)
    choose_providers("auto")
    if types is None or isinstance(results[0], Exception):
        return
    assert [type_of(array) for array in results[0]] == list(types)
    if call.op_type in DECLARATIONS and any(array.size for array in results[0]):
        assert raw_types(call.op_type, [each.array for each in operands], attrs) == list(types)
    assert_close(computed(call, arrays), in_graph(call, arrays), is_exact=True)


def computed(call: Call, arrays: Sequence[Array]) -> list[Array] | Exception:
    """Results in PyNative mode; what it raises, if that is said properly."""
    operands, attrs = call.operation([array.copy() for array in arrays])
    try:
        return [each.array for each in execute(call.op_type, operands, attrs)]
    except GraphError as error:
        return error


def in_graph(call: Call, arrays: Sequence[Array]) -> list[Array] | Exception:
    operands, attrs = call.operation([array.copy() for array in arrays])
    run = ms.jit(lambda *tensors: execute(call.op_type, tensors, attrs))
    try:
        return [each.array for each in run(*operands)]
    except GraphError as error:
        return error


def raw_types(op_type: str, arrays: Sequence[Array], attrs: Any) -> list[Any]:
    """Of what the declared function itself gives: a kernel casts and broadcasts its results into memory."""
    compute = DECLARATIONS[op_type].of_tensors
    raw = torch_operator.computed(compute, [tensor_of(array) for array in arrays], attrs)
    return [TensorType(dtype_name(each.dtype), tuple(each.shape)) for each in raw]


def assert_close(first: Any, second: Any, is_exact: bool) -> None:
    if isinstance(first, Exception) or isinstance(second, Exception):
        assert isinstance(first, Exception) and isinstance(second, Exception), (first, second)
        return
    assert [type_of(each) for each in first] == [type_of(each) for each in second]
    for one, other in zip(first, second, strict=True):
        near = TOLERANCE.get(dtypes.dtype_from_numpy(one.dtype).name, 0)
        if near:
            one, other = (each.astype(np.complex128 if each.dtype.kind == "c" else np.float64) for each in (one, other))
        if is_exact or not near:
            np.testing.assert_array_equal(other, one)
            continue
        size = float(np.max(np.abs(one), initial=1, where=np.isfinite(one)))
        np.testing.assert_allclose(other, one, rtol=near, atol=near * size)


# -- what is refused -----------------------------------------------------------------------------------------------

ROWS, TABLE = np.array([0, 3], np.int32), np.zeros((3, 2), np.float32)
# Operands that a library takes, with results of no meaning, or that end the process -> what is said.
REFUSED: dict[str, tuple[str, list[Any], str]] = {
    "a coordinate": (
        "TensorScatterAdd",
        [TABLE, np.array([(0, 3)]), np.ones(1)],
        r"indices of axis 1 in \[0, 2\), got 3",
    ),
    "a negative one": ("TensorScatterUpdate", [TABLE, np.array([(-1, 0)]), np.ones(1)], "indices of axis 0"),
    "too many": ("ScatterNd", [np.array([(0, 1, 0)]), np.ones(1), (3, 2)], "at most 2 coordinates"),
    "updates": ("TensorScatterMax", [TABLE, np.array([(0, 1)]), np.ones((1, 1))], r"updates of shape \(1,\)"),
    "a row": ("InplaceAdd", [TABLE, TABLE[:2], (0, 3)], r"indices of axis 0 in \[0, 3\), got 3"),
    "a segment": ("UnsortedSegmentMax", [TABLE[:2], ROWS, 3], r"in \[0, 3\), got 3"),
    "pivots": ("LuUnpack", [np.eye(3, dtype=np.float32), np.array([1, 9, 3], np.int32)], r"pivots in \[1, 3\]"),
    "one pivot": ("LuUnpack", [np.eye(3, dtype=np.float32), np.array([1], np.int32)], r"pivots of shape \(3,\)"),
    "no rows": ("MultilabelMarginLoss", [TABLE[:0], np.zeros((0, 2), np.int64)], "at least one row"),
    "margins": ("MirrorPad", [TABLE[None], ((1, 1), (1, 1))], "paddings for each of 3 axes"),
    "no vectors": ("Cross", [TABLE[:2], TABLE[:2]], "an axis of size 3"),
    "a small dtype": ("Complex", [TABLE.astype(np.float16)] * 2, "dtype float32 or float64"),
    "two shapes": ("SmoothL1Loss", [TABLE, TABLE[:1]], r"a target of shape \(3, 2\)"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_operands_without_a_result_are_refused(name: str) -> None:
    op_type, args, message = REFUSED[name]
    with pytest.raises(GraphError, match=message):
        DECLARATIONS[op_type].call(*(ms.Tensor(each) if isinstance(each, np.ndarray) else each for each in args))


def test_limits_of_two_byte_floats() -> None:
    values = ms.Tensor(np.array([np.nan, np.inf, -np.inf, 1], np.float32)).astype(ms.bfloat16)
    limit = float(torch.finfo(torch.bfloat16).max)
    assert ops.nan_to_num(values).float().asnumpy().tolist() == [0, limit, -limit, 1]
    empty = ops.unsorted_segment_min(values[3:], ms.Tensor([-1]), 1)
    assert empty.float().asnumpy().tolist() == [limit]


# -- gradients ---------------------------------------------------------------------------------------------------------

# Gradients that are not those of the values.
NOT_DIFFERENCES = {
    "StopGradient": "that is its purpose",
    "SoftmaxCrossEntropyWithLogits": "it counts on labels whose sum is 1",
    **dict.fromkeys(
        ("BatchNormGrad", "GroupNormGrad", "LayerNormGrad", "MaxPoolGrad"), "some operands are results of the others"
    ),
    **dict.fromkeys(cases_draws.CASES, "nothing flows through draws"),
}
# How many of the results have a gradient, where the others are for the gradient alone.
DIFFERENTIATED = {"BatchNorm": 1, "GroupNorm": 1, "LayerNorm": 1, "LSTM": 3}
# How many of the operands have one, where the others are constants to MindSpore.
DIFFERENTIABLE = {
    "BatchNorm": 3,
    "BCEWithLogitsLoss": 2,
    "BinaryCrossEntropy": 2,
    "BinaryCrossEntropyGrad": 3,
    "DropoutGrad": 1,
    "KLDivLoss": 1,
    "OneHot": 0,
}
# Where an index comes twice the last value wins, but the gradient flows to all, as MindSpore's does.
LAST_WINS = re.compile(r"(Tensor)?Scatter|SparseToDense|IndexPut|Inplace|MaxUnpool")
STEP = 1e-6


def has_gradient(call: Call) -> bool:
    declaration = DECLARATIONS.get(call.op_type)
    if declaration is not None and not declaration.has_gradient:
        return False
    return REGISTRY[call.op_type].bprop is not None and call.op_type not in NOT_DIFFERENCES and call.has_derivative


def is_float(array: Array) -> bool:
    return dtypes.dtype_from_numpy(array.dtype).is_float


@pytest.mark.parametrize("calls", [run for run in RUNS if has_gradient(run.values[0][0])])
@settings(max_examples=2)
@given(data=st.data())
def test_gradients_are_finite_differences(calls: Sequence[Call], data: st.DataObject) -> None:
    """Along one direction, where both sides agree, which they do not at a corner."""
    call = data.draw(st.sampled_from(calls))
    own = [array.astype(np.float64) if is_float(array) else array for array in call.arrays]
    is_kept = LAST_WINS.match(call.op_type) is not None
    names = [dtypes.dtype_from_numpy(own[0].dtype).name] if own else []
    # The operands of a gradient have the shapes that its operator gives them.
    has_other_shapes = not is_kept and not call.op_type.endswith("Grad")
    arrays = data.draw(operands_like(own, names, has_other_shapes=has_other_shapes))
    rng = np.random.default_rng(7)
    for place, array in enumerate(arrays):
        if is_float(array):
            arrays[place] = array + 1e-4 * rng.uniform(-1, 1, array.shape)  # no two are equal
        elif is_kept:
            arrays[place] = own[place]
    floats = [place for place, array in enumerate(arrays) if is_float(array)]
    places = floats[: DIFFERENTIABLE.get(call.op_type)]
    results = computed(call, arrays) if call.is_smooth and places else GraphError()
    if isinstance(results, Exception) or not any(map(is_float, results)):
        return
    weights = [rng.uniform(0.5, 1, result.shape) if is_float(result) else None for result in results]
    weights[DIFFERENTIATED.get(call.op_type, len(weights)) :] = []
    directions = {place: rng.uniform(-1, 1, arrays[place].shape) for place in places}

    def loss(*tensors: Any) -> Any:
        operands, attrs = call.operation(arrays)
        for place, tensor in zip(floats, tensors, strict=True):
            operands[place] = tensor
        parts = [
            (result.astype(ms.float64) * ms.Tensor(weight)).sum()
            for result, weight in zip(execute(call.op_type, operands, attrs), weights, strict=False)
            if weight is not None
        ]
        return sum(parts[1:], parts[0])

    def moved(step: float) -> float:
        return float(loss(*(ms.Tensor(arrays[place] + step * directions.get(place, 0)) for place in floats)))

    with np.errstate(all="ignore"):
        before, middle, after = moved(-STEP), moved(0), moved(STEP)
        expected = (after - before) / (2 * STEP)
        near = 1e-4 * max(1.0, abs(expected))
        is_smooth = abs(after - 2 * middle + before) < near * STEP and abs(middle) < 1e5
    is_smooth = is_smooth and all(np.isfinite(result).all() for result in results if is_float(result))
    # MindSpore's gradient divides by the standard deviation, also where one value alone makes that 0.
    is_smooth = is_smooth and not (call.op_type == "ReduceStd" and (results[0] == 0).any())
    if not is_smooth:
        return
    try:
        gradients = ms.grad(loss, tuple(range(len(places))))(*(ms.Tensor(arrays[place]) for place in floats))
    except GraphError as error:
        if "the gradient of a gradient is not defined" not in str(error) and any(result.size for result in results):
            raise
        return
    gradients = [each.asnumpy() for each in (gradients if isinstance(gradients, tuple) else (gradients,))]
    assert [(each.shape, each.dtype) for each in gradients] == [(arrays[p].shape, arrays[p].dtype) for p in places]
    actual = sum(float((each * directions[place]).sum()) for place, each in zip(places, gradients, strict=True))
    assert actual == pytest.approx(expected, abs=near)


# Their first operand has a derivative that PyTorch lacks.
_OWN = {"Igamma", "Igammac", "Zeta"}
_UNKNOWN = [run for run in RUNS if not run.values[0][0].has_derivative and run.values[0][0].op_type not in _OWN]


@pytest.mark.parametrize("calls", _UNKNOWN)
def test_an_unknown_derivative_is_said(calls: Sequence[Call]) -> None:
    """It is not a gradient of zero."""
    call = calls[0]
    operands, attrs = call.operation([each.astype(np.float64) if is_float(each) else each for each in call.arrays])
    with pytest.raises(GraphError, match=f"{call.op_type}: PyTorch"):
        ms.grad(lambda first: execute(call.op_type, [first, *operands[1:]], attrs)[0].sum())(operands[0])


@pytest.mark.parametrize("place", [-1, 12])
def test_places_outside_of_a_tensor_have_no_coordinates(place: int) -> None:
    """Source: real MindSpore 2.7."""
    with pytest.raises(GraphError, match="UnravelIndex"):
        execute("UnravelIndex", [ms.Tensor([place], ms.int32), ms.Tensor([3, 4], ms.int32)], {})
