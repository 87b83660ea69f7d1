"""What gradients come as: tensors and tuples, by positions, weights, further results, and ids.

The expected forms are those of MindSpore 2.0.0 and 2.7.0 for the same calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Parameter, Tensor, nn, ops

X, Y, ONES = ([1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [1.0, 1.0, 1.0])


def of(values: Any, dtype: Any = np.float32) -> Tensor:
    return Tensor(np.array(values, dtype))


def form(thing: Any) -> str:
    """Tensors as the sums of their elements, tuples as they are."""
    if isinstance(thing, Tensor):
        return f"{thing.asnumpy().sum():g}"
    if isinstance(thing, tuple | list):
        inside = " ".join(map(form, thing))
        return f"[{inside}]" if isinstance(thing, list) else f"({inside})"
    return repr(thing)


class Weighted(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(of(X), name="w")
        self.b = Parameter(of([0.5, 0.5, 0.5]), name="b")

    def construct(self, x: Any, y: Any) -> Any:
        return ((x * self.w + self.b) * y).sum()


class Scaled(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.w = Parameter(of(X), name="w")

    def construct(self, x: Any) -> Any:
        return x * self.w


def loss(x: Any, y: Any) -> Any:
    return (x * x * y).sum()


def loss_and_one(x: Any, y: Any) -> Any:
    return loss(x, y), x + y


def loss_and_two(x: Any, y: Any) -> Any:
    return loss(x, y), x + y, x - y


def two(x: Any, y: Any) -> Any:
    return x * y, x + y


def scaled(x: Any, factor: Any = 2.0) -> Any:
    return x * factor


def one_in_a_tuple(x: Any) -> Any:
    return (x * x,)


def square_and_one(x: Any) -> Any:
    return x * x, x + x


def square_and_two(x: Any) -> Any:
    return x * x, x + x, x - 1


GRADIENTS: list[tuple[Any, str, str, str, str]] = [
    # grad_position; of loss; of loss_and_one with has_aux; of `two`; with return_ids
    (0, "64", "(64 (21))", "18", "(0 64)"),
    (1, "14", "(14 (21))", "9", "(1 14)"),
    ((0,), "64", "(64 (21))", "18", "(0 64)"),
    ((1,), "14", "(14 (21))", "9", "(1 14)"),
    ((0, 1), "(64 14)", "((64 14) (21))", "(18 9)", "((0 64) (1 14))"),
    ((1, 0), "(14 64)", "((14 64) (21))", "(9 18)", "((1 14) (0 64))"),
]


@pytest.mark.parametrize("row", GRADIENTS, ids=lambda row: str(row[0]))
def test_one_position_gives_one_gradient(either_mode: int, row: tuple[Any, str, str, str, str]) -> None:
    position, plain, with_rest, of_two, with_ids = row
    x, y = of(X), of(Y)
    assert form(ms.grad(loss, position)(x, y)) == plain
    assert form(ms.value_and_grad(loss, position)(x, y)) == f"(78 {plain})"
    assert form(ms.grad(two, position)(x, y)) == of_two
    assert form(ms.grad(loss_and_one, position, None, True)(x, y)) == with_rest
    gradients = with_rest.removesuffix(" (21))")[1:]
    assert form(ms.value_and_grad(loss_and_two, position, None, True)(x, y)) == f"((78 21 -9) {gradients})"
    assert form(ms.grad(loss, position, return_ids=True)(x, y)) == with_ids
    assert form(ms.grad(loss, position)(x, y=y)) == plain


@pytest.mark.parametrize(("position", "inputs"), [(None, ""), (0, "32"), ((0,), "32"), ((0, 1), "(32 15.5)")])
@pytest.mark.parametrize("names", ["w", ["w"], ["w", "b"], ("w", "b"), []], ids=str)
def test_one_weight_gives_one_gradient_and_a_list_a_tuple(
    either_mode: int, position: Any, inputs: str, names: Any
) -> None:
    net = Weighted()
    weights = net.w if isinstance(names, str) else type(names)(getattr(net, name) for name in names)
    value = {"w": "32", "b": "15"}
    plain = value[names] if isinstance(names, str) else form_of(value[name] for name in names)
    ids = f"('w' {value['w']})" if isinstance(names, str) else form_of(f"('{name}' {value[name]})" for name in names)
    x, y = of(X), of(Y)
    expected = plain if position is None else f"({inputs} {plain})"
    assert form(ms.grad(net, position, weights)(x, y)) == expected
    assert form(ms.value_and_grad(net, position, weights)(x, y)) == f"(85.5 {expected})"
    of_inputs = {None: "", 0: "(0 32)", (0,): "(0 32)", (0, 1): "((0 32) (1 15.5))"}[position]
    with_ids = ms.grad(net, position, weights, return_ids=True)(x, y)
    assert form(with_ids) == (ids if position is None else f"({of_inputs} {ids})")
    if names:
        assert form(ms.get_grad(with_ids, net.w)) == "32"
    if position is not None:
        assert form(ms.get_grad(with_ids, 0)) == "32"


def form_of(parts: Any) -> str:
    return f"({' '.join(parts)})"


@pytest.mark.parametrize(
    ("position", "expected"), [(0, "9"), (1, "()"), ((0,), "9"), ((1,), "()"), ((0, 1), "9")], ids=str
)
def test_a_number_has_no_gradient(either_mode: int, position: Any, expected: str) -> None:
    assert form(ms.grad(scaled, position)(of(X), 3)) == expected
    assert form(ms.value_and_grad(scaled, position)(of(X), 3)) == f"(18 {expected})"


def test_integers_have_rounded_gradients(either_mode: int) -> None:
    whole = of([1, 2, 3], np.int32)
    gradients = ms.grad(scaled, (0, 1))(of(X), whole)
    assert [(str(each.dtype), each.asnumpy().tolist()) for each in gradients] == [
        ("Float32", [1.0, 2.0, 3.0]),
        ("Int32", [1, 2, 3]),
    ]
    (cast,) = ops.GradOperation(get_all=True)(lambda k: k.astype(ms.float32) * 2.5)(whole)
    assert cast.asnumpy().tolist() == [2, 2, 2]
    # Nothing goes on from a comparison.
    assert form(ms.grad(lambda x, k: x * (k > 1).astype(ms.float32), 1)(of(X), whole)) == "0"


@pytest.mark.parametrize("jacobian", [ms.jacrev, ms.jacfwd])
@pytest.mark.parametrize(
    ("position", "of_loss", "of_two"),
    [
        (0, "64", "(15 3)"), ((0,), "64", "(15 3)"), ((1,), "14", "(6 3)"),
        ((0, 1), "(64 14)", "((15 6) (3 3))"), ((1, 0), "(14 64)", "((6 15) (3 3))"),
    ],
)  # fmt: skip
def test_jacobians(either_mode: int, jacobian: Callable[..., Any], position: Any, of_loss: str, of_two: str) -> None:
    x, y = of(X), of(Y)
    assert form(jacobian(loss, position)(x, y)) == of_loss
    assert form(jacobian(two, position)(x, y)) == of_two
    assert form(jacobian(loss_and_one, position, True)(x, y)) == f"({of_loss} 21)"
    assert form(jacobian(loss_and_two, position, True)(x, y)) == f"({of_loss} (21 -9))"
    assert form(jacobian(one_in_a_tuple)(x)) == "12"


def test_products_with_jacobians(either_mode: int) -> None:
    x, y, v = of(X), of(Y), of(ONES)
    net = Scaled()

    def called(results: tuple[Any, ...], *vectors: Any) -> str:
        return form((results[0], results[1](*vectors), *results[2:]))

    assert called(ms.vjp(two, x, y), v, v) == "((32 21) (18 9))"
    assert called(ms.vjp(one_in_a_tuple, x), v) == "((14) (12))"
    assert called(ms.vjp(square_and_one, x, has_aux=True), v) == "(14 (12) 12)"
    assert called(ms.vjp(square_and_two, x, has_aux=True), v) == "(14 (12) (12 3))"
    assert called(ms.vjp(net, x, weights=net.w), v) == "(14 ((6) 6))"
    assert called(ms.vjp(net, x, weights=(net.w,)), v) == "(14 ((6) (6)))"
    assert form(ms.jvp(two, (x, y), (v, v))) == "((32 21) (21 6))"
    assert form(ms.jvp(square_and_one, x, v, has_aux=True)) == "(14 12 12)"
    assert form(ms.jvp(square_and_two, x, v, has_aux=True)) == "(14 12 (12 3))"
    whole = of([1, 2, 3], np.int32)
    assert form(ms.jvp(scaled, (x, whole), (v, whole))) == "(14 20)"


@pytest.mark.parametrize("get_all", [False, True])
@pytest.mark.parametrize("get_by_list", [False, True])
@pytest.mark.parametrize("sens_param", [False, True])
def test_grad_operation(either_mode: int, get_all: bool, get_by_list: bool, sens_param: bool) -> None:
    operation = ops.GradOperation(get_all, get_by_list, sens_param)
    net = Weighted()
    factor = 2 if sens_param else 1
    sens = (of(2.0),) if sens_param else ()
    inputs = f"({32 * factor:g} {15.5 * factor:g})"
    single, listed = f"{32 * factor:g}", f"({32 * factor:g} {15 * factor:g})"
    for weights, of_weights in ((net.w, single), ([net.w, net.b], listed), ([net.w], f"({single})")):
        expected = {
            (False, False): f"{32 * factor:g}", (True, False): inputs,
            (False, True): of_weights, (True, True): f"({inputs} {of_weights})",
        }[get_all, get_by_list]  # fmt: skip
        assert form(operation(net, weights)(of(X), of(Y), *sens)) == expected
    if get_by_list:
        # Source: MindSpore: without weights PyNative takes all that a cell trains, a graph none.
        of_weights = listed if either_mode == ms.PYNATIVE_MODE else "()"
        assert form(operation(net)(of(X), of(Y), *sens)) == (f"({inputs} {of_weights})" if get_all else of_weights)
    else:
        assert form(ops.GradOperation(get_all)(loss)(of(X), y=of(Y))) == ("(64 14)" if get_all else "64")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ms.grad(loss, [0]), TypeError, "grad_position: expected an int or a tuple"),
        (lambda: ms.grad(loss, ()), RuntimeError, "grad_position: expected at least one"),
        (lambda: ms.grad(loss, (0, 0)), ValueError, "grad_position: expected each position once"),
        (lambda: ms.grad(loss, -1), ValueError, "grad_position: expected ints >= 0"),
        (lambda: ms.grad(loss, None), ValueError, "grad_position, weights: expected one of them"),
        (lambda: ms.grad(loss, 0, None, 1), TypeError, "has_aux: expected a bool"),
        (lambda: ms.grad(loss, 2)(of(X), of(Y)), IndexError, "expected a position of the 2 arguments, got 2"),
        (lambda: ms.grad(loss, 0)(), TypeError, "missing 2 required"),
        (lambda: ms.grad(loss, 0, None, True)(of(X), of(Y)), RuntimeError, "several results with has_aux"),
        (lambda: ms.grad(one_in_a_tuple, 0, None, True)(of(X)), ValueError, "several results with has_aux"),
        (lambda: ms.jacrev(loss, [0]), TypeError, "grad_position"),
        (lambda: ms.jacrev(loss, 2)(of(X), of(Y)), ValueError, "grad_position: expected positions of the 2"),
        (lambda: ms.jacfwd(loss, -1), ValueError, "grad_position"),
        (lambda: ms.jacfwd(loss, (0, 0)), ValueError, "grad_position"),
        (lambda: ms.vjp(scaled, of(X), has_aux=True), ValueError, "several results with has_aux"),
        (lambda: ms.get_grad((0, of(X)), "w"), TypeError, "identifier"),
        (lambda: ms.get_grad((0, of(X)), 1), RuntimeError, "Can not find"),
    ],
)  # fmt: skip
def test_wrong_arguments(either_mode: int, call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
