"""Tensors made from a shape, and from chance, as GE operators."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from msdump.torchair.ge.program import runnable  # noqa: E402
from tests.torchair.ge_calls import graph_of, spelling  # noqa: E402
from tests.torchair.ge_exact import check_exactly, check_traced, equal  # noqa: E402

aten = torch.ops.aten
X = torch.arange(6.0).reshape(2, 3)
I8, F64, BF16, BOOL = torch.int8, torch.float64, torch.bfloat16, torch.bool

CASES = [
    (aten.full.default, ([2, 3], 0.1), {}, "Fill(dims,value)"),
    (aten.full.default, ([2], 0.1), {"dtype": F64}, "Fill(dims,value)"),
    (aten.full.default, ([], True), {}, "Fill(dims,value)"),
    (aten.full.default, ([2], float("inf")), {"dtype": torch.half}, "Fill(dims,value)"),
    (aten.full.default, ([2], 2**40), {}, "Fill(dims,value)"),
    (aten.ones.default, ([2],), {"dtype": torch.int32}, "Fill(dims,value)"),
    (aten.zeros.default, ([2, 1],), {}, "Fill(dims,value)"),
    (aten.zeros.default, ([2, 1],), {"dtype": torch.complex64}, "Fill(dims,value)"),
    (aten.new_full.default, (X, [2], 0.3), {}, "Fill(dims,value)"),
    (aten.new_ones.default, (X, [2]), {"dtype": BOOL}, "Fill(dims,value)"),
    (aten.new_zeros.default, (X, [3, 3]), {}, "Fill(dims,value)"),
    (aten.full_like.default, (X, 1.5), {}, "Shape(x) Cast(x) Fill(dims,value)"),
    (aten.full_like.default, (X, 1), {"dtype": I8}, "Shape(x) Cast(x) Fill(dims,value)"),
    (aten.fill.Scalar, (X, 2), {}, "Shape(x) Cast(x) Fill(dims,value)"),
    (aten.fill.Tensor, (X, torch.tensor(2)), {}, "Shape(x) Cast(x) Cast(x) Fill(dims,value)"),
    (aten.ones_like.default, (X,), {}, "OnesLike(x)"),
    (aten.ones_like.default, (X,), {"dtype": I8}, "OnesLike(x) Cast(x)"),
    (aten.zeros_like.default, (X,), {"memory_format": torch.preserve_format}, "ZerosLike(x)"),
    (aten.zeros_like.default, (torch.tensor(3),), {}, "ZerosLike(x)"),
    (aten.arange.default, (5,), {}, "Range(start,limit,delta)"),
    (aten.arange.default, (5,), {"dtype": torch.int32}, "Range(start,limit,delta) Cast(x)"),
    (aten.arange.default, (2.5,), {}, "Range(start,limit,delta)"),
    (aten.arange.start, (-3, 300), {"dtype": torch.int16}, "Range(start,limit,delta) Cast(x)"),
    (aten.arange.start_step, (0, 1, 0.1), {}, "Range(start,limit,delta)"),
    (aten.arange.start_step, (0, 1, 0.1), {"dtype": F64}, "Range(start,limit,delta)"),
    (aten.arange.start_step, (5, -5, -2), {"dtype": BF16}, "Range(start,limit,delta)"),
    (aten.eye.default, (3,), {}, "Eye()"),
    (aten.eye.m, (2, 4), {"dtype": I8}, "Eye()"),
    (aten.linspace.default, (0, 1, 7), {}, "LinSpace(start,stop,num)"),
    (aten.scalar_tensor.default, (0.1,), {"dtype": F64}, "Fill(dims,value)"),
]


@pytest.mark.parametrize(("target", "args", "named", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_is_spelled_and_computed(target: Any, args: Any, named: Any, spelled: str) -> None:
    check_exactly(target, args, spelled, **named)


@pytest.mark.parametrize(
    ("target", "args", "named"),
    [
        (aten.empty.memory_format, ([2, 3],), {"dtype": I8}),
        (aten.empty_like.default, (X,), {}),
        (aten.new_empty.default, (X, [4]), {"dtype": BOOL}),
        (aten.empty_strided.default, ([2, 3], [1, 2]), {}),
        (aten.empty_permuted.default, ([2, 3], [1, 0]), {}),
    ],
)
def test_what_is_empty_has_a_shape_and_a_dtype(target: Any, args: Any, named: Any) -> None:
    graph, tensors = graph_of(target, *args, **named)
    (made,) = runnable(graph)(tensors)
    expected = target(*args, **named)
    assert (made.shape, made.dtype) == (expected.shape, expected.dtype)
    assert spelling(graph)[-1] == "Empty(shape)"


PROBABILITIES = torch.tensor([[0.0, 0.3, 1.0], [0.5, 0.9, 0.1]])
NORMAL = "ConcatV2(x0,x1,concat_dim) StatelessRandomNormalV2(shape,key,counter,alg)"
UNIFORM = "ConcatV2(x0,x1,concat_dim) StatelessRandomUniformV2(shape,key,counter,alg)"
UNIFORM_INT = "ConcatV2(x0,x1,concat_dim) StatelessRandomUniformIntV2(shape,key,counter,alg,minval,maxval)"
BERNOULLI = "Shape(x) ConcatV2(x0,x1,concat_dim) StatelessBernoulliV2(shape,prob,seed,offset)"
MASK = "Shape(x) ConcatV2(x0,x1,concat_dim) StatelessDropOutGenMask(shape,prob,seed,seed1,offset)"

RANDOM = [
    (aten.rand.default, ([40, 3],), {}, UNIFORM),
    (aten.rand.default, ([],), {"dtype": F64}, UNIFORM),
    (aten.randn.default, ([40],), {"dtype": BF16}, NORMAL),
    (aten.rand_like.default, (X,), {}, "Shape(x) " + UNIFORM),
    (aten.randn_like.default, (X,), {"dtype": F64}, "Shape(x) " + NORMAL),
    (aten.rand_like.default, (X.T,), {}, "Shape(x) " + UNIFORM),
    (aten.randn_like.default, (X.T,), {}, "Shape(x) " + NORMAL),
    (aten.randint_like.default, (X.T, 5), {}, "Shape(x) " + UNIFORM_INT),
    (aten.randint.default, (9, [30]), {}, UNIFORM_INT),
    (aten.randint.low, (-9, 9, [30]), {"dtype": I8}, UNIFORM_INT),
    (aten.randint_like.default, (X, 5), {}, "Shape(x) " + UNIFORM_INT),
    (aten.randint_like.low_dtype, (X, 2, 5), {}, "Shape(x) " + UNIFORM_INT),
    (aten.randperm.default, (30,), {}, "StatelessRandperm(n,seed,offset)"),
    (aten.uniform.default, (X, -1.0, 3.0), {}, "StatelessUniform(x,seed,offset)"),
    (aten.normal_functional.default, (X, 1.0, 0.1), {}, "StatelessNormal(x,seed,offset)"),
    (aten.exponential.default, (X, 2.0), {}, "StatelessExponential(x,seed,offset)"),
    (aten.bernoulli.p, (torch.empty(5, 40), 0.3), {}, BERNOULLI),
    (aten.bernoulli.p, (torch.empty(5, 40, dtype=F64).t(), 0.3), {}, BERNOULLI),
    (aten.bernoulli.default, (PROBABILITIES,), {}, BERNOULLI),
    (aten.multinomial.default, (PROBABILITIES, 2), {}, "MultinomialWithReplacement(x,seed,offset)"),
    (aten.native_dropout.default, (X, 0.3, True), {}, MASK + " DropOutDoMask(x,mask,keep_prob)"),
    (aten.native_dropout.default, (X.T, 0.3, True), {}, MASK + " DropOutDoMask(x,mask,keep_prob)"),
    (aten.native_dropout.default, (X, 1.0, None), {}, MASK + " DropOutDoMask(x,mask,keep_prob)"),
    (aten.native_dropout.default, (X.half(), 0.3, True), {}, MASK + " DropOutDoMask(x,mask,keep_prob)"),
    (aten.native_dropout.default, (X, 0.3, False), {}, "Shape(x) Fill(dims,value) Identity(x)"),
    (aten.native_dropout_backward.default, (X, X > 2, 1 / 0.7), {}, "Cast(x) Mul(x1,x2) Mul(x1,x2)"),
]


@pytest.mark.parametrize(("target", "args", "named", "spelled"), RANDOM, ids=[str(case[0]) for case in RANDOM])
def test_chance_is_that_of_torch(target: Any, args: Any, named: Any, spelled: str) -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    graph, tensors = graph_of(target, *args, **named)
    assert torch.equal(torch.get_rng_state(), before), "compiling must draw nothing"
    assert " ".join(spelling(graph)) == spelled
    run = runnable(graph)
    first, second = run([*tensors]), run([*tensors])
    torch.manual_seed(7)
    for actual in (first, second):
        expected = target(*args, **named)
        equal(actual, list(expected) if isinstance(expected, tuple) else [expected])


def test_open_sizes() -> None:
    def function(x: Any) -> Any:
        rows = x.shape[0]
        return (
            torch.full((rows, 2), 0.5),
            torch.zeros_like(x),
            torch.full_like(x, 3),
            torch.arange(rows),
            torch.arange(1, 2 * rows, 2, dtype=torch.int32),
            torch.full((2,), rows),
            torch.ones(rows * 2, rows // 2),
            torch.scalar_tensor(rows, dtype=torch.float64),
            x * rows,
        )

    check_traced(function, torch.randn(4, 3), also=[(torch.randn(7, 3),)], symbolic=True)
