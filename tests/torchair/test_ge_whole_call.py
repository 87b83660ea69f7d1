"""Operators without a GE form: each is one GE operator that makes the call as it is, with the bits of eager."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import fx  # noqa: E402
from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts  # noqa: E402

from msdump.process import sessions  # noqa: E402
from msdump.torchair.ge.convert import convert  # noqa: E402
from msdump.torchair.ge.graph import CONST, GeGraph  # noqa: E402
from msdump.torchair.ge.program import runnable  # noqa: E402
from msdump.torchair.ge.registry import NoConverterError, converter  # noqa: E402
from msdump.torchair.ge.whole_call import ge_type  # noqa: E402
from tests.torchair.ge_calls import graph_of, results_of, spelling  # noqa: E402
from tests.torchair.ge_exact import check_exactly, check_traced, equal, types  # noqa: E402
from tests.torchair.graph_mode_dumps import backend, files, tree, values  # noqa: E402
from tests.torchair.test_ge_core import compiled  # noqa: E402

aten = torch.ops.aten
X = torch.randn(4, 4, generator=torch.Generator().manual_seed(1))
SYMMETRIC = X @ X.T + torch.eye(4)


# -- operators of PyTorch ------------------------------------------------------------------------------------------

CASES = [
    (aten.histc.default, (X, 5), "Histc(self)"),
    (aten.diag_embed.default, (X, 1), "DiagEmbed(self)"),
    (aten._fft_r2c.default, (X, [1], 0, True), "FftR2c(self)"),
    (aten._fft_c2c.default, (torch.complex(X, X), [0, 1], 0, False), "FftC2c(self)"),
    (aten._fft_c2r.default, (torch.complex(X, X), [1], 2, 4), "FftC2r(self)"),
    (aten.linalg_inv_ex.default, (X,), "LinalgInvEx(A)"),
    (aten.linalg_cholesky_ex.default, (SYMMETRIC,), "LinalgCholeskyEx(self)"),
    (aten.linalg_qr.default, (X,), "LinalgQr(A)"),
    (aten._linalg_svd.default, (X,), "LinalgSvd(A)"),
    (aten._linalg_eigh.default, (SYMMETRIC,), "LinalgEigh(A)"),
    (aten.linalg_eig.default, (X,), "LinalgEig(self)"),
    (aten._linalg_det.default, (X,), "LinalgDet(A)"),
    (aten._linalg_slogdet.default, (X,), "LinalgSlogdet(A)"),
    (aten._linalg_solve_ex.default, (X, SYMMETRIC), "LinalgSolveEx(A,B)"),
    (aten.linalg_lu.default, (X,), "LinalgLu(A)"),
    (aten.linalg_matrix_exp.default, (X,), "LinalgMatrixExp(self)"),
    (aten.linalg_pinv.atol_rtol_tensor, (X,), "LinalgPinv(self)"),
    (aten.special_zeta.default, (X.abs() + 2, X.abs()), "SpecialZeta(self,other)"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "args", "spelled"), CASES, ids=[str(case[0]) for case in CASES])
def test_operators_of_pytorch(target: Any, args: Any, spelled: str) -> None:
    check_exactly(target, args, spelled)


@pytest.mark.skipif(not hasattr(aten, "_grouped_mm"), reason="this PyTorch has no grouped products")
def test_grouped_products() -> None:
    x, weight = (torch.randn(sizes).bfloat16() for sizes in ((16, 16), (2, 16, 16)))
    offsets = torch.tensor([8, 16], dtype=torch.int32)
    check_exactly(aten._grouped_mm.default, (x, weight, offsets), "GroupedMm(self,mat2,offs)")


def test_results_have_the_names_of_the_schema() -> None:
    graph, _ = graph_of(aten._linalg_svd.default, X)
    (op,) = [op for op in graph.ops if op.type == "LinalgSvd"]
    assert op.output_names == ("U", "S", "Vh")
    assert [tensor.fx_name.rpartition("-")[2] for tensor in op.outputs] == [
        f"aten._linalg_svd.default.OUTPUT.{index}" for index in range(3)
    ]


def test_what_is_no_tensor_is_an_attribute() -> None:
    graph, _ = graph_of(aten._fft_c2r.default, torch.complex(X, X), [1], 2, 4)
    (op,) = [op for op in graph.ops if op.type == "FftC2r"]
    assert op.attrs == {"dim": (1,), "normalization": 2, "last_dim_size": 4}


def test_sizes_that_are_open_come_in() -> None:
    def function(x: Any) -> Any:
        return torch.fft.irfft(torch.fft.rfft(x), n=x.shape[1]), torch.diag_embed(x, 1)

    graph = check_traced(function, torch.randn(3, 4), also=[(torch.randn(5, 6),)], symbolic=True)
    assert {"FftR2c", "FftC2r", "DiagEmbed"} <= set(types(graph))
    assert "last_dim_size" in next(op for op in graph.ops if op.type == "FftC2r").inputs


def test_a_converter_that_gives_up_leaves_nothing_behind() -> None:
    @converter("aten.special_bessel_j1.default")
    def gives_up(ge: Any, x: Any) -> Any:
        ge.op("Add", {"x1": x, "x2": 1.0})
        raise NoConverterError("expected something else.")

    traced = fx.symbolic_trace(lambda x: torch.ops.aten.add.Tensor(torch.ops.aten.special_bessel_j1.default(x), 1))
    _note_values(traced, X)
    graph = convert(traced, 1)
    assert [op.name for op in graph.ops] == ["x", "SpecialBesselJ1", "Const", "Add", "NetOutput"]
    equal(runnable(graph)([X])[0], torch.special.bessel_j1(X) + 1)


def _note_values(module: Any, *args: Any) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.fx.passes.fake_tensor_prop import FakeTensorProp

    FakeTensorProp(module, FakeTensorMode()).propagate(*args)


def test_what_writes_is_refused() -> None:
    with pytest.raises(NoConverterError, match=r"torch.ops.aten.special_airy_ai.out ge_converter is not implemented!"):
        graph_of(aten.special_airy_ai.out, X, out=torch.empty(4, 4))


# -- operators of a script -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own() -> Iterator[Any]:
    """Operators of a script: with several results, a list, a name that GE has, and two that write."""
    library = torch.library.Library("msdump_whole", "DEF")
    library.define("twice(Tensor x, Tensor y, float k) -> (Tensor, Tensor)")
    library.impl("twice", lambda x, y, k: (x * k + y, x - y), "CompositeExplicitAutograd")
    library.define("copies(Tensor[] items, str name, Tensor? w=None) -> Tensor[]")
    library.impl("copies", lambda items, name, w=None: [x.clone() for x in items], "CompositeExplicitAutograd")
    library.define("add(Tensor x) -> Tensor")
    library.impl("add", lambda x: x + 7, "CompositeExplicitAutograd")
    library.define("data(Tensor x) -> Tensor")
    library.impl("data", lambda x: x.sin(), "CompositeExplicitAutograd")
    library.define("double_(Tensor(a!) x) -> ()")
    library.impl("double_", _double, "CPU")
    library.define("shift_(Tensor(a!) x, Tensor y) -> Tensor")
    library.impl("shift_", lambda x, y: x.add_(y) * 2, "CPU")
    torch.library.register_fake("msdump_whole::double_", lambda x: None, lib=library)
    torch.library.register_fake("msdump_whole::shift_", lambda x, y: torch.empty_like(x), lib=library)
    yield torch.ops.msdump_whole
    library._destroy()


def _double(x: Any) -> None:
    x.mul_(2)


def test_operators_of_a_script(own: Any) -> None:
    check_exactly(own.twice.default, (X, SYMMETRIC, 0.5), "Twice(x,y)")
    check_exactly(own.copies.default, ([X, SYMMETRIC], "both"), "Copies(items0,items1)")


def test_a_type_that_ge_has_is_not_taken_twice(own: Any) -> None:
    assert ge_type(own.add.default) == "MsdumpWholeAdd"
    assert ge_type(own.data.default) == "MsdumpWholeData"
    assert ge_type(aten.histc.default) == "Histc"
    _, (actual,) = results_of(own.data.default, X)
    equal(actual, X.sin())


def _in_place(own: Any) -> Callable[..., Any]:
    def function(x: Any, y: Any) -> Any:
        z = x * 1.5
        shifted = own.shift_(z, y)
        own.double_(z)
        own.double_(x)
        return z + shifted

    return function


@pytest.mark.usefixtures("own_dump")
def test_operators_that_write(own: Any, tmp_path: Path) -> None:
    """auto_functionalized: what is written, is written into a copy, which is dumped as an output."""
    function = _in_place(own)
    x, y = X.clone(), X.clone()
    with torch.no_grad():
        actual = torch.compile(function, backend=backend(tmp_path))(x, SYMMETRIC)
        equal(actual, function(y, SYMMETRIC))
    equal(x, y)
    sessions.close_all()
    ((_, of_folder),) = files(tmp_path).items()
    dumped = values(of_folder)
    equal(torch.from_numpy(dumped["Shift", "output", 0].copy()), (X * 1.5 + SYMMETRIC) * 2)
    equal(torch.from_numpy(dumped["Shift", "output", 1].copy()), X * 1.5 + SYMMETRIC)
    assert {"Double.Double", "Double.Double_1"} <= set().union(*tree(tmp_path).values())


# -- operators that call graphs ------------------------------------------------------------------------------------


def _cond(x: Any, y: Any) -> Any:
    return torch.cond(x.sum() > 0, lambda a, b: (a.sin() + b).cos(), lambda a, b: a.cos() * b, (x, y))


def _while(x: Any, y: Any) -> Any:
    from torch._higher_order_ops import while_loop

    return while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a * 2 + y), (torch.tensor(0), x))[1]


def _scan(x: Any, y: Any) -> Any:
    from torch._higher_order_ops.scan import scan

    return scan(lambda carry, row: (carry + row, carry * row), y[0], x)[1]


def _flex(x: Any, y: Any) -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    query, key = x.reshape(1, 1, 4, 4), y.reshape(1, 1, 4, 4)
    return flex_attention(query, key, key, score_mod=lambda score, b, h, i, j: score + (i - j))


def _masked_flex(x: Any, y: Any) -> Any:
    """With a mask of blocks: tensors, numbers and a graph in one argument."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    mask = create_block_mask(lambda b, h, q, k: q >= k, 1, 1, 4, 4, device="cpu", BLOCK_SIZE=4)
    return flex_attention(*(value.reshape(1, 1, 4, 4) for value in (x, y, y)), block_mask=mask)


def _dropout(x: Any, y: Any) -> Any:
    return torch.nn.functional.dropout(x.sin() @ y, 0.5).sigmoid()


def _checkpoint(x: Any, y: Any) -> Any:
    return checkpoint(_dropout, x, y, use_reentrant=False)


def _selective(x: Any, y: Any) -> Any:
    from functools import partial

    contexts = partial(create_selective_checkpoint_contexts, [aten.mm.default])
    return checkpoint(_dropout, x, y, use_reentrant=False, context_fn=contexts)


def _solve(x: Any, y: Any) -> Any:
    return torch.linalg.solve(x, y) + torch.fft.fft(x).abs() + torch.linalg.inv(y)


# Function, whether it has gradients, types that its graphs have.
FUNCTIONS = [
    (_cond, True, {"Cond"}),
    (_cond, False, {"Cond"}),
    (_while, False, {"WhileLoop"}),
    (_scan, False, {"Scan"}),
    (_flex, False, {"FlexAttention"}),
    (_masked_flex, False, {"FlexAttention"}),
    (_checkpoint, True, {"NativeDropout"}),
    (_selective, True, {"NativeDropout"}),
    (_solve, True, {"LinalgSolveEx", "LinalgLuSolve", "FftR2c", "LinalgInvEx"}),
]  # fmt: skip
IDS = [f"{function.__name__}-{'training' if has_grad else 'inference'}" for function, has_grad, _ in FUNCTIONS]


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")  # the eager reference
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("function", "has_grad", "expected"), FUNCTIONS, ids=IDS)
@pytest.mark.usefixtures("own_dump")
def test_results_and_gradients_are_those_of_eager(
    function: Any, has_grad: bool, expected: set[str], dynamic: bool, tmp_path: Path
) -> None:
    run = torch.compile(function, backend=backend(tmp_path), dynamic=dynamic)
    for sign in (1, -1):
        results = []
        for each in (run, function):
            torch.manual_seed(3)
            x, y = ((sign * value).requires_grad_(has_grad) for value in (X, SYMMETRIC))
            result = each(x, y)
            if has_grad:
                result.sum().backward()
            results.append((result, x.grad, y.grad))
        for actual, eager in zip(*results, strict=True):
            equal(actual, eager)
    sessions.close_all()
    names = set().union(*tree(tmp_path).values())
    assert expected <= {name.partition(".")[0] for name in names}


@pytest.mark.usefixtures("own_dump")
def test_a_matrix_without_an_inverse_is_the_error_of_pytorch(tmp_path: Path) -> None:
    run = torch.compile(torch.linalg.inv, backend=backend(tmp_path))
    equal(run(SYMMETRIC), torch.linalg.inv(SYMMETRIC))
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        run(torch.zeros(4, 4))


def test_a_branch_is_an_attribute_and_its_operands_come_in() -> None:
    graphs: list[GeGraph] = []
    compiled(_cond, graphs)(X, SYMMETRIC)
    (op,) = [op for op in graphs[0].ops if op.type == "Cond"]
    assert spelling(graphs[0])[-1] == "Cond(pred,operands0,operands1)"
    assert op.attrs == {"true_fn": "true_graph_0", "false_fn": "false_graph_0"}
    assert len(op.outputs) == 1 and op.output_names == ("y",)


@pytest.mark.usefixtures("own_dump")
def test_what_checkpoint_saves_of_chance_is_dumped(tmp_path: Path) -> None:
    x, y = X.clone().requires_grad_(), SYMMETRIC
    torch.manual_seed(3)
    state = torch.get_rng_state()
    torch.compile(_checkpoint, backend=backend(tmp_path))(x, y).sum().backward()
    sessions.close_all()
    forward, backward = (values(of_folder) for _, of_folder in sorted(files(tmp_path).items()))
    equal(torch.from_numpy(forward["NativeDropout", "output", 0].copy()), state)
    equal(torch.from_numpy(backward["NativeDropout", "input", 0].copy()), state)
    # The same elements are dropped when the backward computes them again.
    assert (forward["NativeDropout", "output", 2] == backward["NativeDropout", "output", 1]).all()


# -- what is said --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("own_dump")
def test_each_operator_is_told_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def function(x: Any) -> Any:
        return torch.special.airy_ai(x).sin()

    with caplog.at_level(logging.WARNING, "msdump"):
        for _ in range(2):
            torch._dynamo.reset()
            torch.compile(function, backend=backend(tmp_path))(X)
    (told,) = [record.getMessage() for record in caplog.records if "special_airy_ai" in record.getMessage()]
    assert "aten.special_airy_ai.default (SpecialAiryAi)" in told and "PyTorch's operator" in told


def test_text_of_a_graph_dump_is_python() -> None:
    import ast

    from msdump.torchair.graph_dump.python import python_text

    graphs: list[GeGraph] = []
    compiled(_cond, graphs)(X, SYMMETRIC)
    text = python_text(graphs[0])
    ast.parse(text)
    assert "ge.Cond(Greater_0, [arg0_1_0, arg1_1_0], true_fn='true_graph_0', false_fn='false_graph_0'" in text
    assert not [op for op in graphs[0].ops if op.type == CONST and op.call is not None]
