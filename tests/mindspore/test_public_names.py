"""Names of MindSpore that public programs use: the values that MindSpore 2.7.0 gives, or those of PyTorch where its
package for the CPU has no kernel."""

from __future__ import annotations

import json
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from msdump import mindspore as ms  # noqa: E402
from msdump.mindspore import mint, nn, train  # noqa: E402
from tests.reference.public_names import FAMILIES, listed, numbers, whole  # noqa: E402

GOLDEN = json.loads((Path(__file__).parent.parent / "golden" / "mindspore_public_names.json").read_text("utf-8"))
CASES = [(family, name) for family, values in GOLDEN.items() for name in values]


def _expect_near(got: Any, expected: Any) -> None:
    if isinstance(expected, list) and expected and isinstance(expected[0], list):
        assert len(got) == len(expected)
        for each, other in zip(got, expected, strict=True):
            _expect_near(each, other)
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
@pytest.mark.parametrize(("family", "name"), CASES, ids=[" ".join(case) for case in CASES])
def test_values_are_those_of_mindspore(family: str, name: str, mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        _expect_near(listed(FAMILIES[family](ms)[name]()), GOLDEN[family][name])
    finally:
        ms.set_context(mode=before)


def test_every_call_has_its_values() -> None:
    assert {family: set(make(ms)) for family, make in FAMILIES.items()} == {
        family: set(values) for family, values in GOLDEN.items()
    }


@pytest.mark.parametrize(
    ("name", "shape"), [("BatchNorm1d", (4, 3)), ("BatchNorm1d", (4, 3, 2)), ("BatchNorm2d", (2, 3, 2, 2)),
                        ("BatchNorm3d", (2, 3, 2, 2, 2))],
)  # fmt: skip
def test_a_batch_normalisation_of_mint_is_that_of_pytorch(name: str, shape: tuple[int, ...]) -> None:
    ours, theirs = getattr(mint.nn, name)(3, momentum=0.3), getattr(torch.nn, name)(3, momentum=0.3)
    x = numbers(*shape)
    for is_training in (True, True, False):
        result = ours.set_train(is_training)(ms.Tensor(x))
        np.testing.assert_allclose(result.asnumpy(), theirs.train(is_training)(torch.tensor(x)).detach(), atol=1e-5)
    for kept in ("running_mean", "running_var", "num_batches_tracked"):
        np.testing.assert_allclose(getattr(ours, kept).asnumpy(), getattr(theirs, kept), atol=1e-5)
    with pytest.raises(ValueError, match="axes, but got 6"):
        ours(ms.ops.ones((1,) * 6))


def test_a_transposed_convolution_of_mint_is_that_of_pytorch() -> None:
    settings = (4, 6, 3, 2, 1, 1, 2)
    ours, theirs = mint.nn.ConvTranspose2d(*settings), torch.nn.ConvTranspose2d(*settings)
    theirs.load_state_dict({name: torch.tensor(each.asnumpy()) for name, each in ours.parameters_dict().items()})
    x = numbers(1, 4, 3, 3)
    np.testing.assert_allclose(ours(ms.Tensor(x)).asnumpy(), theirs(torch.tensor(x)).detach(), atol=1e-5)
    with pytest.raises(ValueError, match="padding_mode"):
        mint.nn.ConvTranspose2d(1, 1, 1, padding_mode="reflect")


def test_rows_of_a_table_have_a_largest_norm() -> None:
    table = nn.EmbeddingLookup(4, 3, max_norm=0.5)
    rows = np.linalg.norm(table(ms.Tensor(whole(2, 5))).asnumpy(), axis=-1)
    assert (rows <= 0.5 + 1e-6).all()
    np.testing.assert_array_equal(nn.MatrixDiag()(ms.Tensor(numbers(2, 3))).asnumpy()[1], np.diag(numbers(2, 3)[1]))


def test_a_dictionary_of_cells_is_one_of_python() -> None:
    cells = nn.CellDict(OrderedDict(one=nn.ReLU(), two=nn.Dense(2, 2)))
    assert list(cells) == list(cells.keys()) == ["one", "two"] and "one" in cells and len(cells) == 2
    assert [each.name for each in cells.get_parameters()] == ["two.weight", "two.bias"]
    cells["three"] = nn.Tanh()
    assert isinstance(cells.pop("one"), nn.ReLU) and list(cells) == ["two", "three"] and hash(cells) is not None
    cells.clear()
    assert not cells.items() and cells != nn.CellDict()
    for key, cell, error in ((1, nn.ReLU(), TypeError), ("a.b", nn.ReLU(), KeyError), ("a", nn.CellList(), TypeError)):
        with pytest.raises(error):
            cells[key] = cell


def test_pictures_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="two images"):
        nn.SSIM()(ms.ops.ones((1, 1, 2, 2)), ms.ops.ones((1, 2, 2, 2)))
    with pytest.raises(ValueError, match="must be > 0"):
        nn.PSNR(0)
    with pytest.raises(ValueError, match="both none"):
        nn.ResizeBilinear()(ms.ops.ones((1, 1, 2, 2)))
    assert nn.ResizeBilinear()(ms.ops.ones((1, 1, 2, 2)), scale_factor=3).shape == (1, 1, 6, 6)


def test_an_area_below_a_curve_needs_an_order() -> None:
    assert train.auc(np.array([1.0, 0.5, 0.0]), np.array([1.0, 0.7, 0.2])) == pytest.approx(0.65)
    with pytest.raises(ValueError, match="rises or falls"):
        train.auc(np.array([0.0, 1.0, 0.5]), np.zeros(3))
    with pytest.raises(ValueError, match="there is no"):
        train.ROC()(np.array([0.2, 0.3]), np.array([1, 1]))


@pytest.mark.parametrize("clips", [False, True])
def test_lars_scales_gradients_by_the_length_of_the_weight(clips: bool) -> None:
    """Source: MindSpore's documentation; its package for the CPU has no kernel."""
    weight, gradient, rate = numbers(4), numbers(4, seed=1), 0.1
    parameters = [ms.Parameter(ms.Tensor(weight), name) for name in ("weight", "bias")]
    inner = nn.Momentum(parameters, rate, 0.0, weight_decay=0.2, loss_scale=2.0)
    nn.LARS(inner, 1e-3, 0.5, clips)((ms.Tensor(gradient * 2), ms.Tensor(gradient * 2)))
    length, other = np.linalg.norm(weight), np.linalg.norm(gradient)
    factor = 0.5 * length / (other + 0.2 * length + 1e-3)
    factor = min(factor / rate, 1) if clips else factor
    expected = weight - rate * (gradient + 0.2 * weight) * factor
    np.testing.assert_allclose(parameters[0].asnumpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(parameters[1].asnumpy(), weight - rate * gradient, rtol=1e-5)
    with pytest.raises(TypeError, match="must be Optimizer"):
        nn.LARS(parameters)


@pytest.mark.parametrize("mode", [ms.PYNATIVE_MODE, ms.GRAPH_MODE], ids=["pynative", "graph"])
def test_cells_give_the_gradients_of_a_network(mode: int) -> None:
    before = ms.get_context("mode")
    ms.set_context(mode=mode)
    try:
        net, x = nn.Dense(3, 1, has_bias=False), ms.Tensor(numbers(2, 3))
        loss = nn.WithLossCell(net, nn.MSELoss())
        label = ms.ops.zeros((2, 1))
        value, (of_inputs, of_weights) = nn.ForwardValueAndGrad(
            loss, net.trainable_params(), get_all=True, get_by_list=True
        )(x, label)
        assert value.shape == () and of_inputs[0].shape == (2, 3)
        (other,) = nn.WithGradCell(net, nn.MSELoss())(x, label)
        np.testing.assert_allclose(of_weights[0].asnumpy(), other.asnumpy(), rtol=1e-5)
        _, single = nn.ForwardValueAndGrad(net, sens_param=True)(x, ms.Tensor(np.full((2, 1), 2, np.float32)))
        np.testing.assert_allclose(single.asnumpy(), np.tile(2 * net.weight.asnumpy(), (2, 1)), rtol=1e-5)
        nn.ParameterUpdate(net.weight)(ms.ops.ones((1, 3)))
        assert (net.weight.asnumpy() == 1).all()
        add = nn.VirtualDatasetCellTriple(_Sum())
        assert float(add(*(ms.Tensor(1.0),) * 3)) == 3
    finally:
        ms.set_context(mode=before)


class _Sum(nn.Cell):
    def construct(self, a: ms.Tensor, b: ms.Tensor, c: ms.Tensor) -> ms.Tensor:
        return a + b + c


def test_slices_of_a_parameter_are_joined() -> None:
    slices = [ms.Parameter(ms.Tensor(numbers(2, 3, seed=seed)), "w") for seed in (0, 1)]
    expected = np.concatenate([each.asnumpy() for each in slices])
    np.testing.assert_array_equal(ms.merge_sliced_parameter(slices).asnumpy(), expected)
    with pytest.raises(RuntimeError, match="cuts no parameters"):
        ms.build_searched_strategy("strategy.ckpt")
    with pytest.raises(TypeError, match="a list of Parameter"):
        ms.merge_sliced_parameter(slices[0])
    assert nn.Dense(1, 1).set_broadcast_flag().get_flags()["broadcast_flag"]
