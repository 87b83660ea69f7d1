"""Functions of `mindspore.ops` and methods of Tensor that are made of operators: the values of numpy or PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump import mindspore as ms  # noqa: E402
from msdump.errors import GraphError  # noqa: E402
from msdump.mindspore import ops  # noqa: E402
from tests.mindspore.declared_cases import numbers, whole  # noqa: E402

T = ms.Tensor
x, y, cube, vector = numbers(3, 4), numbers(3, 4, seed=1), numbers(2, 3, 4), numbers(4)
square, batch = numbers(3, 3), numbers(2, 4, 3)
image, F = torch.from_numpy(numbers(1, 2, 4, 4)), torch.nn.functional
tx, tcube, tvector = torch.from_numpy(x), torch.from_numpy(cube), torch.from_numpy(vector)


@pytest.fixture(autouse=True, params=[ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def mode(request: pytest.FixtureRequest) -> Iterator[int]:
    before = ms.get_context("mode")
    ms.set_context(mode=request.param)
    yield request.param
    ms.set_context(mode=before)


# Name -> the function of tensors, its operands, what numpy or PyTorch gives.
COMPOSED: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "rot90": (lambda a: (ops.rot90(a, 1, (0, 1)), ops.rot90(a, 3, (0, 1)), ops.rot90(a, 2, (0, 1))), (x,),
              (np.rot90(x), np.rot90(x, 3), np.rot90(x, 2))),
    "flip": (lambda a: (ops.fliplr(a), ops.flipud(a), ops.flip(a, 1)), (x,), (x[:, ::-1], x[::-1], x[:, ::-1])),
    "cov": (lambda a, b: (ops.cov(a), a.cov(correction=0), ops.cov(b), ops.cov(ops.cast(a * 9, ms.int32))), (x, vector),
            (np.cov(x), np.cov(x, ddof=0), np.cov(vector), np.cov((x * 9).astype(np.int32)))),
    "cov weighted": (lambda a, f, w: (ops.cov(a, fweights=f), ops.cov(a, correction=0, fweights=f, aweights=w)),
                     (x, np.array([1, 2, 1, 3], np.int32), np.array([0.5, 2, 1, 1], np.float32)),
                     (np.cov(x, fweights=[1, 2, 1, 3]),
                      np.cov(x, ddof=0, fweights=[1, 2, 1, 3], aweights=[0.5, 2, 1, 1]))),
    "block_diag": (lambda a, b, c: ops.block_diag(a, b, c[0], a), (x, vector, vector),
                   np.block([[x, np.zeros((3, 9))], [np.zeros((1, 4)), vector[None], np.zeros((1, 5))],
                             [np.zeros((1, 8)), vector[:1, None], np.zeros((1, 4))], [np.zeros((3, 9)), x]])),
    "movedim": (lambda a: (ops.movedim(a, 0, 2), ops.moveaxis(a, (0, 1), (2, 0))), (cube,),
                (np.moveaxis(cube, 0, 2), np.moveaxis(cube, (0, 1), (2, 0)))),
    "permute": (lambda a: (a.permute(2, 0, 1), a.permute((-1, 0, 1)), a.mT, a.swapdims(0, 2)), (cube,),
                (cube.transpose(2, 0, 1), cube.transpose(2, 0, 1), cube.swapaxes(1, 2), cube.swapaxes(0, 2))),
    "chunk": (lambda a: (*ops.chunk(a, 3, 1), *a.chunk(2)), (x,), (x[:, :2], x[:, 2:], x[:2], x[2:])),
    "tensor_split": (lambda a: (*ops.tensor_split(a, 3, 1), *ops.tensor_split(a, (1, 3), 1), *ops.vsplit(a, 3)), (x,),
                     (*np.array_split(x, 3, 1), *np.split(x, (1, 3), 1), *np.split(x, 3))),
    "stacks": (lambda a, b: (ops.hstack((a, b)), ops.vstack((a, b)), ops.dstack((a, b)), ops.column_stack((a, b))),
               (vector, vector + 1),
               tuple(f((vector, vector + 1)) for f in (np.hstack, np.vstack, np.dstack, np.column_stack))),
    "atleast": (lambda a: (ops.atleast_2d(a), ops.atleast_3d(a)), (vector,), (vector[None], np.atleast_3d(vector))),
    "repeat": (lambda a: (a.repeat(2, 1), a.repeat([1, 0, 2], 0), a.repeat_interleave(2), a.repeat((2, 3))), (x,),
               (np.repeat(x, 2, 1), np.repeat(x, [1, 0, 2], 0), np.repeat(x, 2), np.tile(x, (2, 3)))),
    "expand": (lambda a, b: (a.expand_as(b), a.expand((3, -1))), (vector, x), (np.broadcast_to(vector, (3, 4)),) * 2),
    "combinations": (lambda a, b: (ops.combinations(a, 2, True), ops.cartesian_prod(a, b)), (vector, vector[:2]),
                     (torch.combinations(tvector, 2, True),
                      torch.cartesian_prod(tvector, torch.from_numpy(vector[:2])))),
    "diag_embed": (lambda a: (ops.diag_embed(a, 1), ops.diag_embed(a, -1, 0, 2), ops.diagflat(a)), (x,),
                   (torch.diag_embed(tx, 1), torch.diag_embed(tx, -1, 0, 2), torch.diagflat(tx))),
    "pad": (lambda a: (ops.pad(a, (1, 2)), ops.pad(a, (1, -1), "constant", 5), ops.pad(a, (1, 1), "replicate")),
            (cube,),
            (F.pad(tcube, (1, 2)), F.pad(tcube, (1, -1), "constant", 5),
             F.pad(tcube, (1, 1), "replicate"))),
    "windows": (lambda a: (ops.unfold(a, 2), ops.fold(ops.unfold(a, 2), (4, 4), 2), ops.pixel_unshuffle(a, 2)),
                (numbers(1, 2, 4, 4),),
                (F.unfold(image, 2),
                 F.fold(F.unfold(image, 2), (4, 4), 2),
                 F.pixel_unshuffle(image, 2))),
    "pixel_shuffle": (lambda a: ops.pixel_shuffle(a, 2), (numbers(2, 8, 2, 3),),
                      F.pixel_shuffle(torch.from_numpy(numbers(2, 8, 2, 3)), 2)),
    "gather": (lambda a, i: ops.gather(a, i, 2, 1), (cube, np.array([[0, 1], [3, 1]], np.int32)),
               np.stack([cube[0][:, [0, 1]], cube[1][:, [3, 1]]])),
    "take": (lambda a, i: (a.take(i), a.take(i, mode="wrap"), a.take(i, 0)), (x, np.array([0, 15, -14], np.int32)),
             (np.take(x, [0, 15, -14], mode="clip"), np.take(x, [0, 15, -14], mode="wrap"), x[[0, 2, 0]])),
    "topk": (lambda a: (*ops.topk(a, 2, 0, False), *a.topk(2), a.argsort(0, True)), (x,),
             (*torch.topk(tx, 2, 0, False), *torch.topk(tx, 2), np.argsort(-x, 0))),
    "segments": (lambda a, i: ops.unsorted_segment_sum(a, i, 2), (x, np.array([1, -1, 1], np.int32)),
                 np.stack([np.zeros(4, np.float32), x[0] + x[2]])),
    "sequence_mask": (lambda n: ops.sequence_mask(n, 4), (np.array([1, 3], np.int32),),
                      np.arange(4) < np.array([[1], [3]])),
    "scatter": (lambda a, i, u: (a.scatter_add(i, u), a.scatter(1, i, ops.ones((3, 2), ms.float32))),
                (x, np.array([(0, 1), (2, 2), (1, 0)], np.int32), vector[:3]),
                (tx.index_put((torch.tensor([0, 2, 1]), torch.tensor([1, 2, 0])), torch.from_numpy(vector[:3]), True),
                 tx.scatter(1, torch.tensor([(0, 1), (2, 2), (1, 0)]), 1.0))),
    "var": (lambda a: (a.var(), a.std(0, 1), *ops.var_mean(a, 1, 2, True), *ops.std_mean(a, 0)), (x,),
            (x.var(), x.std(0, ddof=1), x.var(1, ddof=2, keepdims=True), x.mean(1, keepdims=True), x.std(0),
             x.mean(0))),
    "max": (lambda a: (a.max(1, initial=0.5), *a.max(1, return_indices=True), *ops.min(a, 0), ops.max(a)[1]), (x,),
            (x.max(1, initial=0.5), x.max(1), x.argmax(1), x.min(0), x.argmin(0), np.int64(0))),
    "norm": (lambda a: tuple(ops.norm(a, ord, 1) for ord in (None, 1, 3, 0.5, 0, np.inf, -np.inf)), (x,),
             tuple(np.linalg.norm(x, ord, 1) for ord in (None, 1, 3, 0.5, 0, np.inf, -np.inf))),
    "matrix norm": (lambda a: tuple(ops.norm(a, ord, (0, 1)) for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf)), (x,),
                    tuple(np.linalg.norm(x, ord, (0, 1)) for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf))),
    "logsumexp": (lambda a: (a.logsumexp(1), ops.logsumexp(a, axis=(0, 1), keep_dims=True)), (x,),
                  (torch.logsumexp(tx, 1), torch.logsumexp(tx, (0, 1), True))),
    "nansum": (lambda a: (ops.nansum(a), a.nansum(1, True)), (np.where(x > 0.5, np.nan, x).astype(np.float32),),
               (np.where(x > 0.5, 0, x).sum(dtype=np.float32), np.where(x > 0.5, 0, x).sum(1, keepdims=True))),
    "diff": (lambda a: (a.diff(axis=0), a.ptp(1, True)), (x,), (np.diff(x, axis=0), np.ptp(x, 1, keepdims=True))),
    "products": (lambda a, b, c: (ops.addmm(c, a, b.T, beta=0.5, alpha=2), ops.kron(a, c), ops.inner(a, b),
                                  ops.tensor_dot(a, b, ((0, 1), (0, 1))), ops.dot(a, b.T)), (x, y, square),
                 (0.5 * square + 2 * x @ y.T, np.kron(x, square), np.inner(x, y), np.tensordot(x, y), x @ y.T)),
    "vectors": (lambda a, v, w: (ops.mv(a, v), ops.outer(w, v), ops.addmv(w, a, v, beta=2), ops.addr(a, w, v)),
                (x, vector, vector[:3]),
                (x @ vector, np.outer(vector[:3], vector), 2 * vector[:3] + x @ vector,
                 x + np.outer(vector[:3], vector))),
    "batches": (lambda a, b, c: (ops.baddbmm(c, a, b), ops.addbmm(c, a, b)), (cube, batch, square),
                (square + cube @ batch, square + (cube @ batch).sum(0))),
    "clip": (lambda a, i: (ops.clip(a, max=0.5), a.clamp(0.2, 0.6), ops.clip(i, 1.5, 5)), (x, whole(5)),
             (x.clip(max=0.5), x.clip(0.2, 0.6), whole(5).clip(1, 5))),
    "clip_by_global_norm": (lambda a, b: ops.clip_by_global_norm((a, b), 0.5), (x, y),
                            tuple(each * 0.5 / np.sqrt((x**2).sum() + (y**2).sum()) for each in (x, y))),
    "casts": (lambda a: (a.half(), a.long(), a.bool(), a.new_ones((2,)), a.fill(2.0)), (x,),
              (x.astype(np.float16), x.astype(np.int64), x.astype(bool), np.ones(2, np.float32), np.full_like(x, 2))),
    "sums": (lambda a: (a.trace(1), a.resize(2, 3), a.ravel()), (x,),
             (np.trace(x, 1), np.resize(x, (2, 3)), x.ravel())),
    "creation": (lambda a: (ops.linspace(1, 10, 4), ops.full_like(a, 3), ops.slice(a, (1, 1), (2, 2))), (x,),
                 (np.linspace(1, 10, 4, dtype=np.float32), np.full_like(x, 3), x[1:3, 1:3])),
}  # fmt: skip


@pytest.mark.parametrize("name", COMPOSED)
def test_values_are_those_of_numpy_and_pytorch(name: str, mode: int) -> None:
    function, operands, expected = COMPOSED[name]
    if mode == ms.GRAPH_MODE:
        function = ms.jit(function)
    results = function(*(T(each) for each in operands))
    results = results if isinstance(results, tuple | list) else (results,)
    references = expected if isinstance(expected, tuple) else (expected,)
    for result, reference in zip(results, references, strict=True):
        array = np.asarray(reference)
        assert result.shape == array.shape
        # Sums of a dozen float32: a few units in the last place.
        np.testing.assert_allclose(result.asnumpy(), array, rtol=1e-5, atol=1e-5)


def test_scatter_writes_the_parameter(mode: int) -> None:
    parameter = ms.Parameter(T(np.zeros((3, 2), np.float32)), name="table")

    def update(rows: Any, values: Any) -> Any:
        return ops.scatter_add(parameter, rows, values)

    run = ms.jit(update) if mode == ms.GRAPH_MODE else update
    run(T(np.array([0, 2], np.int32)), T(np.ones((2, 2), np.float32)))
    run(T(np.array([2, 2], np.int32)), T(np.ones((2, 2), np.float32)))
    assert parameter.asnumpy().tolist() == [[1, 1], [0, 0], [3, 3]]


def test_parameters_have_the_names_of_both_versions() -> None:
    a, b = T(x), T(y)
    assert ops.isclose(x1=a, x2=a).asnumpy().all() and ops.isclose(input=a, other=a).asnumpy().all()
    chosen = [ops.where(condition=a > b, x=a, y=b), ops.where(a > b, input=a, other=b), ops.maximum(x=a, y=b)]
    assert all((each.asnumpy() == np.maximum(x, y)).all() for each in chosen)
    assert ops.tile(a, dims=(2, 1)).shape == ops.tile(a, multiples=(2, 1)).shape == (6, 4)
    with pytest.raises(TypeError):
        ops.maximum(a, b, nothing=1)


def test_quotients_are_rounded_as_said() -> None:
    a = T(np.array([-7, 7], np.int32))
    assert ops.div(a, 2, rounding_mode="floor").asnumpy().tolist() == [-4, 3]
    assert ops.div(a, 2, rounding_mode="trunc").asnumpy().tolist() == [-3, 3]
    assert ops.round(T(np.array([1.25, -2.345], np.float32)), decimals=1).asnumpy().tolist() == pytest.approx(
        [1.2, -2.3]
    )
    with pytest.raises(ValueError, match="rounding_mode"):
        ops.div(a, 2, rounding_mode="up")


def test_scatter_wants_a_parameter() -> None:
    with pytest.raises(TypeError, match="must be a Parameter"):
        ops.scatter_update(T(x), T(np.array([0], np.int32)), T(x[:1]))


def test_a_size_that_data_decide_stops_a_graph(mode: int) -> None:
    def chosen(a: Any) -> Any:
        return ops.masked_select(a, a > 0.5)

    np.testing.assert_array_equal(ms.jit(chosen)(T(x)).asnumpy(), x[x > 0.5])
    if mode == ms.PYNATIVE_MODE:
        np.testing.assert_array_equal(chosen(T(x)).asnumpy(), x[x > 0.5])
        return
    ms.set_context(jit_syntax_level=ms.STRICT)
    with pytest.raises(GraphError, match="PYNATIVE_MODE"):
        ms.jit(chosen)(T(x))
