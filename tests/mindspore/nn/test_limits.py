"""What layers and cells take and refuse, and what transposed convolutions add: as MindSpore 2.7 on a CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from msdump import mindspore as ms
from msdump.errors import OperandValueError
from msdump.mindspore import Parameter, Tensor, nn, ops

PICTURE = Tensor(np.arange(9, dtype=np.float32).reshape(1, 1, 3, 3))


def transposed(**options: Any) -> nn.Conv2dTranspose:
    return nn.Conv2dTranspose(1, 1, 2, weight_init="ones", has_bias=True, bias_init="ones", **options)


@pytest.mark.parametrize(
    ("options", "shape", "row"),
    [
        ({"pad_mode": "pad", "stride": 2, "output_padding": 1}, (7, 7), [1, 1, 2, 2, 3, 3, 0]),
        ({"pad_mode": "pad", "stride": 2, "padding": 1, "output_padding": 1}, (5, 5), [1, 2, 2, 3, 0]),
        ({"pad_mode": "pad", "stride": 3, "output_padding": (1, 0)}, (9, 8), [1, 1, 1, 2, 2, 1, 3, 3]),
        ({"pad_mode": "pad", "dilation": 2, "output_padding": 1}, (6, 6), [1, 2, 3, 2, 3, 0]),
        ({"pad_mode": "valid", "stride": 3}, (9, 9), [1, 1, 1, 2, 2, 1, 3, 3, 1]),
        ({"pad_mode": "valid", "stride": 2, "dilation": 2}, (7, 7), [1, 1, 2, 1, 4, 1, 3]),
    ],
)
def test_output_padding_are_zeros_behind_the_bias(options: Any, shape: tuple[int, int], row: list[float]) -> None:
    result = transposed(**options)(PICTURE).asnumpy()
    assert result.shape[2:] == shape and result[0, 0, 0].tolist() == row
    if 0 in row:
        assert not result[0, 0, -1].any()


@pytest.mark.parametrize(
    "options",
    [
        {"pad_mode": "pad", "output_padding": 1},
        {"pad_mode": "pad", "stride": 2, "output_padding": 2},
        {"pad_mode": "pad", "stride": 2, "output_padding": (0, -1)},
        {"pad_mode": "same", "stride": 2, "output_padding": 1},
        {"pad_mode": "valid", "stride": 2, "output_padding": (1, 0)},
    ],
)
def test_output_padding_that_fits_nowhere(options: Any) -> None:
    with pytest.raises(ValueError, match="'output_padding' must be"):
        transposed(**options)


@pytest.mark.parametrize("epsilon", [0.0, -1e-5, 1.5])
def test_batch_norm_wants_an_epsilon_above_zero(epsilon: float) -> None:
    ones = [Tensor(np.ones(1, np.float32)) for _ in range(4)]
    for run in (
        lambda: nn.BatchNorm2d(1, eps=epsilon)(PICTURE),
        lambda: ops.BatchNorm(True, epsilon)(PICTURE, *ones),
        lambda: ops.batch_norm(PICTURE, *ones, eps=epsilon),
    ):
        with pytest.raises(OperandValueError, match=r"epsilon in \(0, 1\]"):
            run()


def test_a_child_takes_the_place_of_another() -> None:
    cell, first, second = nn.Cell(), nn.ReLU(), nn.Dense(2, 2)
    cell.insert_child_to_cell("child", first)
    cell.insert_child_to_cell("child", second)
    assert list(cell.cells()) == [second] and cell.child is second
    assert [each.name for each in cell.get_parameters()] == ["child.weight", "child.bias"]
    cell.insert_child_to_cell("later", None)
    cell.insert_child_to_cell("later", first)
    assert list(cell.cells()) == [second, first]


def test_names_that_a_cell_cannot_take() -> None:
    cell = nn.Cell()
    cell.insert_child_to_cell("child", nn.ReLU())
    cell.insert_param_to_cell("none", None)
    cell.insert_param_to_cell("none", Parameter(Tensor(1.0)))
    for name in ("", "a.b", "training"):
        with pytest.raises(KeyError, match="insert_child_to_cell"):
            cell.insert_child_to_cell(name, nn.ReLU())
    for name in ("child", "a.b", "training"):
        with pytest.raises(KeyError, match="insert_param_to_cell"):
            cell.insert_param_to_cell(name, Parameter(Tensor(1.0)))
    for wrong in (lambda: cell.insert_child_to_cell(3, nn.ReLU()), lambda: cell.insert_child_to_cell("x", 3)):
        with pytest.raises(TypeError, match="insert_child_to_cell"):
            wrong()
    with pytest.raises(TypeError, match="insert_param_to_cell"):
        cell.insert_param_to_cell("x", 3)


def test_dtypes_by_the_names_of_c() -> None:
    names = {"byte": "int8", "short": "int16", "intc": "int32", "intp": "int64", "ubyte": "uint8", "ushort": "uint16",
             "uintc": "uint32", "uintp": "uint64"}  # fmt: skip
    for name, same in names.items():
        assert getattr(ms, name) is getattr(ms, same) and Tensor([1], getattr(ms, name)).dtype == getattr(ms, same)


def test_a_cell_is_found_by_its_place() -> None:
    inner = nn.SequentialCell(nn.ReLU(), nn.Dense(2, 2))
    cell = nn.SequentialCell(nn.Dense(2, 2), inner)
    assert cell.get_sub_cell("1.1") is inner[1] and cell.get_sub_cell("1") is inner and cell.get_sub_cell("") is cell
    with pytest.raises(AttributeError, match="absent"):
        cell.get_sub_cell("1.absent")


def test_a_cell_shows_how_it_is_compiled() -> None:
    cell = nn.ReLU()
    assert cell.jit_config_dict == {}
    cell.set_jit_config(ms.JitConfig("O2"))
    assert cell.jit_config_dict == {"jit_level": "O2", "exc_mode": "auto"}
