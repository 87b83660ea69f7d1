"""Decisions at the border: right on both sides, and far apart; and faults that look like them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from msdump.analysis import Comparison, compare_dumps, headline, json_text  # noqa: E402
from tests.analysis.small_dump import floats, write_dump  # noqa: E402

Array = np.ndarray[Any, np.dtype[Any]]
IN, SECOND, THIRD = ("input", 0), ("input", 1), ("input", 2)
OUT, INDEX = ("output", 0), ("output", 1)
RNG = np.random.default_rng(5)


def both(root: Path, mine: list[tuple[str, Any]], golden: list[tuple[str, Any]], **options: Any) -> Comparison:
    return compare_dumps(write_dump(root / "mine", mine), write_dump(root / "golden", golden), **options)


def relu_grad(name: str, x: Array, grad: Array, slope: float = 0.0, border: float = 0.0) -> tuple[str, Any]:
    out = np.where(x > border, grad, slope * grad).astype(np.float32)
    return f"Gradients/Default/{name}", {IN: grad, SECOND: x, OUT: out}


def near_zero(count: int = 1, seed: int = 5) -> tuple[Array, Array, Array]:
    """Two arguments that are equal up to rounding, `count` elements of which have another sign, and a gradient."""
    rng = np.random.default_rng(seed)  # the same in any order of tests
    x = rng.standard_normal((64, 128)).astype(np.float32)
    other = x * np.float32(1 + 1e-7)
    x.reshape(-1)[:count], other.reshape(-1)[:count] = 1e-8, -1e-8
    return x, other, rng.standard_normal((64, 128)).astype(np.float32)


RELU_GRAD = "aten_threshold_backward_default-op0"


def test_a_gradient_that_rounding_turns_off_is_no_difference(tmp_path: Path) -> None:
    x, other, grad = near_zero()
    found = both(tmp_path, [relu_grad(RELU_GRAD, x, grad)], [relu_grad(RELU_GRAD, other, grad)])
    assert found.is_agreeing and found.first_wrong is None and found.tie is not None
    assert (found.tie.count, found.tie.size, found.tie.reached) == (1, 8192, 1)
    lines = headline(found)
    assert lines[0] == "agree: all 1 pairs of operators and parameters agree."
    assert RELU_GRAD in lines[1] and "rounding moved across the border, in 1 of 8192 elements" in lines[2]
    value = json.loads(json_text(found))["tie"]
    assert (value["elements"], value["of"], value["reached"]) == (1, 8192, 1)
    assert value["operator"].endswith(RELU_GRAD)


@pytest.mark.parametrize("fault", [{"slope": 0.01}, {"border": 0.1}])
def test_another_gradient_stays_wrong(tmp_path: Path, fault: Mapping[str, float]) -> None:
    x, other, grad = near_zero()
    found = both(tmp_path, [relu_grad(RELU_GRAD, x, grad, **fault)], [relu_grad(RELU_GRAD, other, grad)])
    assert found.tie is None and found.first_wrong is not None


def test_equal_numbers_excuse_nothing(tmp_path: Path) -> None:
    x, _, grad = near_zero()
    name, tensors = relu_grad(RELU_GRAD, x, grad)
    flipped = tensors[OUT].copy()
    flipped[0, 0] = 0.0
    found = both(tmp_path, [(name, tensors)], [(name, {**tensors, OUT: flipped})])
    assert found.first_wrong is not None and found.tie is None


def product(name: str, x: Array, factor: float = 2.0) -> tuple[str, Any]:
    return f"Gradients/Default/{name}", {IN: x, OUT: (factor * x).astype(np.float32)}


MUL = "aten_mul_Tensor-op{}"


# With some numbers the one element that was decided otherwise is larger than the fault of all.
@pytest.mark.parametrize("seed", [5, 6, 10, 13, 20, 38])
def test_what_a_decision_reaches_is_measured_by_what_reaches_it(tmp_path: Path, seed: int) -> None:
    x, other, grad = near_zero(seed=seed)
    sides = []
    for argument, factor in ((x, 2.5), (other, 2.0)):
        first = relu_grad(RELU_GRAD, argument, grad)
        second = product(MUL.format(0), first[1][OUT])
        sides.append([first, second, product(MUL.format(1), second[1][OUT], factor)])
    found = both(tmp_path, sides[0][:2], sides[1][:2])
    assert found.is_agreeing and found.tie is not None and found.tie.reached == 2 and found.tie.lost is None
    found = both(tmp_path / "faulty", sides[0], sides[1])
    assert found.first_wrong is not None and found.first_wrong.pair.mine.op_name.endswith("op1")
    assert "first wrong operator" in headline(found)[0]


def test_other_data_behind_a_decision_are_a_difference(tmp_path: Path) -> None:
    x, other, grad = near_zero()
    first = [relu_grad(RELU_GRAD, side, grad) for side in (x, other)]
    found = both(tmp_path, [first[0], product(MUL.format(0), x)], [first[1], product(MUL.format(0), x[::-1].copy())])
    assert found.first_differing is not None and found.first_differing.pair.mine.op_name == MUL.format(0)


def test_runs_that_are_far_apart_say_so(tmp_path: Path) -> None:
    x, other, _ = near_zero()
    grad = np.full_like(x, 1e-3)
    grad[0, 0] = 1.0
    sides = []
    for argument in (x, other):
        first = relu_grad(RELU_GRAD, argument, grad)
        sides.append([first, ("Default/aten_neg_default-op0", {IN: first[1][OUT], OUT: -first[1][OUT]})])
    found = both(tmp_path, *sides)
    assert found.tie is not None and found.tie.lost is not None
    assert "so far apart that a fault would not show" in headline(found)[-1]


# -- each kind of decision ------------------------------------------------------------------------------------------


STEPPING = ("round", "floor", "ceil", "trunc")


def run(kind: str, x: Array) -> Mapping[tuple[str, int], Array]:
    """What PyTorch makes of an argument."""
    tensor = torch.from_numpy(x)
    if kind == "max_pool2d_with_indices":
        values, index = torch.ops.aten.max_pool2d_with_indices(tensor, [2, 2])
        return {IN: x, OUT: values.numpy(), INDEX: index.numpy()}
    if kind == "topk":
        values, index = torch.topk(tensor, 2)
        return {IN: x, OUT: values.numpy(), INDEX: index.numpy()}
    if kind == "sort":
        values, index = torch.sort(tensor, 1)
        return {IN: x, OUT: values.numpy(), INDEX: index.numpy()}
    return {IN: x, OUT: getattr(tensor, kind)().numpy()}


def pair_of(kind: str) -> tuple[Array, Array]:
    """Two arguments up to rounding, whose decisions fall otherwise in a few elements."""
    base = RNG.permutation(2 * 3 * 8 * 8).reshape(2, 3, 8, 8).astype(np.float32) + np.float32(0.25)
    base[0, 0, 0, :2] = 500.0  # the two largest of the first row, and of the first window
    mine, golden = base.copy(), base.copy()
    for side, index in ((mine, 0), (golden, 1)):
        side[0, 0, 0, index] = np.nextafter(side[0, 0, 0, index], np.float32(1e9))
    if kind in STEPPING:
        border = np.float32(10.5 if kind == "round" else 10.0)
        mine[0, 0, 0, 0], golden[0, 0, 0, 0] = np.nextafter(border, np.float32(0)), np.nextafter(border, np.float32(99))
    return mine, golden


@pytest.mark.parametrize("kind", [*STEPPING, "argmax", "topk", "sort", "max_pool2d_with_indices"])
def test_each_decision_is_known(tmp_path: Path, kind: str) -> None:
    mine, golden = pair_of(kind)
    if kind in ("topk", "sort", "argmax"):
        mine, golden = mine.reshape(6, -1), golden.reshape(6, -1)
    name = f"Default/aten_{kind}_default-op0"
    sides = [run(kind, side) for side in (mine, golden)]
    last = INDEX if INDEX in sides[0] else OUT
    assert (sides[0][last] != sides[1][last]).any(), "the decision is to fall otherwise"
    found = both(tmp_path, [(name, sides[0])], [(name, sides[1])])
    assert found.is_agreeing and found.tie is not None
    # An index that names something else, a value that is off by two.
    spoiled = sides[0][last].copy()
    spoiled.reshape(-1)[-1] += -2 if kind in STEPPING else -3
    found = both(tmp_path / "spoiled", [(name, {**sides[0], last: spoiled})], [(name, sides[1])])
    assert not found.is_agreeing


@pytest.mark.parametrize("kind", ["gt", "ge", "lt", "le"])
@pytest.mark.parametrize("has_two", [False, True])
def test_comparisons_decide_at_a_border(tmp_path: Path, kind: str, has_two: bool) -> None:
    x, other, _ = near_zero()
    name = f"Default/aten_{kind}_{'Tensor' if has_two else 'Scalar'}-op0"
    compare = getattr(torch, kind)

    def operator(side: Array, border: float = 0.0) -> tuple[str, Any]:
        inputs = {IN: side, SECOND: np.full_like(side, border)} if has_two else {IN: side}
        return name, {**inputs, OUT: compare(torch.from_numpy(side), border).numpy()}

    assert both(tmp_path, [operator(x)], [operator(other)]).is_agreeing
    found = both(tmp_path / "faulty", [operator(x, 0.5)], [operator(other)])
    assert not found.is_agreeing


def test_the_gradient_of_pooling_may_go_to_an_equal_neighbour(tmp_path: Path) -> None:
    name = "Gradients/Default/MaxPoolGrad-op0"
    mine, golden = pair_of("max_pool2d_with_indices")
    grad = RNG.standard_normal((2, 3, 4, 4)).astype(np.float32)

    def operator(x: Array) -> tuple[str, dict[tuple[str, int], Array]]:
        argument = torch.from_numpy(x).requires_grad_()
        out = torch.nn.functional.max_pool2d(argument, 2)
        (passed,) = torch.autograd.grad(out, argument, torch.from_numpy(grad))
        return name, {IN: x, SECOND: out.detach().numpy(), THIRD: grad, OUT: passed.numpy()}

    found = both(tmp_path, [operator(mine)], [operator(golden)])
    assert found.is_agreeing and found.tie is not None
    _, tensors = operator(mine)
    moved = np.roll(tensors[OUT], 1, axis=3)
    found = both(tmp_path / "moved", [(name, {**tensors, OUT: moved})], [operator(golden)])
    assert found.first_wrong is not None


@given(count=st.integers(1, 20), noise=st.floats(1e-9, 1e-7), seed=st.integers(0, 2**32 - 1))
def test_a_gradient_of_relu_agrees_wherever_its_argument_was_rounded(
    count: int, noise: float, seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(256).astype(np.float32)
    x[:count] = rng.standard_normal(count) * noise
    other = (x + rng.standard_normal(256) * noise).astype(np.float32)
    grad = rng.standard_normal(256).astype(np.float32)
    root = tmp_path_factory.mktemp("relu")
    found = both(root, [relu_grad(RELU_GRAD, x, grad)], [relu_grad(RELU_GRAD, other, grad)])
    assert found.is_agreeing


def test_a_parameter_comes_behind_all_operators_of_its_iteration(tmp_path: Path) -> None:
    """It is read in the backward graph, and written by the optimizer in the next one."""
    for side, factor in (("mine", 2.0), ("golden", 3.0)):
        root = tmp_path / side
        write_dump(root, [product(MUL.format(0), floats(1, 2)), ("Parameter.w", {OUT: floats(factor, 1)})], graph=0)
        write_dump(root, [product(MUL.format(0), floats(1, 4), factor)], graph=1)
    found = compare_dumps(tmp_path / "mine", tmp_path / "golden")
    assert found.first_differing is not None and found.first_differing.step.graph_id == 1
    assert found.first_differing is found.first_wrong


def test_gradients_that_are_zero_but_for_rounding_tell_nothing_of_a_step(tmp_path: Path) -> None:
    x, other, grad = near_zero()
    noise = ("Gradients/Default/aten_sum_dim_IntList-op0", floats(1e-12), floats(-3e-12))
    sides = []
    for argument, left in zip((x, other), noise[1:], strict=True):
        first = relu_grad(RELU_GRAD, argument, grad)
        sides.append([first, (noise[0], {IN: first[1][OUT], OUT: left})])
    found = both(tmp_path, *sides)
    assert found.is_agreeing and found.tie is not None and found.tie.lost is None


def test_what_is_written_through_a_view_counts_as_made(tmp_path: Path) -> None:
    """The elements lie in another order in the memory that the next operator reads."""
    x, other, grad = near_zero()
    sides = []
    for argument in (x, other):
        first = relu_grad(RELU_GRAD, argument, grad)
        sides.append([first, product(MUL.format(0), first[1][OUT].T.copy())])
    assert both(tmp_path, *sides).is_agreeing


def test_what_one_run_alone_has_comes_before_what_goes_wrong_behind_it(tmp_path: Path) -> None:
    x = RNG.standard_normal((8, 8)).astype(np.float32)
    more = (x * np.float32(1.01)).astype(np.float32)
    mine = [product(MUL.format(0), x), ("Default/aten_add_Tensor-op0", {IN: x, OUT: more})]
    mine += [(f"Default/{name}", {IN: more, OUT: np.exp(more)}) for name in ("aten_exp_default-op0",)]
    golden = [product(MUL.format(0), x), ("Default/aten_exp_default-op0", {IN: x, OUT: np.exp(x)})]
    later = "Default/aten_sin_default-op0"
    found = both(tmp_path, [*mine, (later, {IN: x, OUT: 2 * x})], [*golden, (later, {IN: x, OUT: np.sin(x)})])
    assert found.first_wrong is not None and found.first_wrong.pair.mine.op_name.startswith("aten_sin")
    lines = headline(found)
    assert lines[0].startswith("first difference: only mine has Default/aten_add_Tensor-op0")
    assert any(line.startswith("first wrong operator: Default/aten_sin_default-op0") for line in lines)
