"""Every loss, with its options, as layer and as function, against PyTorch: values and gradients of all operands."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import msdump.mindspore as ms
from msdump.mindspore import Tensor, mint, nn, ops
from tests.mindspore.nn.against_torch import check

torch = pytest.importorskip("torch")
test_losses = importlib.import_module("tests.mindspore.nn.test_losses")
rows = importlib.import_module("tests.mindspore.nn.loss_rows")

MODULES = {"nn": nn, "ops": ops, "mint.nn": mint.nn, "mint.nn.functional": mint.nn.functional}
# Names of losses. Operator classes of `mindspore.ops` have cases of their own, in `test_operator_properties.py`.
_LOSS = re.compile(r"[A-Za-z0-9]*(Loss|WithLogits)|[a-z0-9_]*(_loss|entropy|kl_div|entropy_with_logits)")
# Of `mindspore.nn`: the base of losses, and a metric.
# tests/mindspore/test_public_names.py has the last three.
_OTHERS = {"nn.LossBase", "nn.Loss", "nn.FocalLoss", "nn.DiceLoss", "nn.MultiClassDiceLoss"}


def _form(path: str, options: dict[str, Any]) -> Any:
    """A function of the data: a layer, in GRAPH_MODE, or a function, in PYNATIVE_MODE."""
    module, _, name = path.rpartition(".")
    thing = getattr(MODULES[module], name)
    is_layer = inspect.isclass(thing)
    ms.set_context(mode=ms.GRAPH_MODE if is_layer else ms.PYNATIVE_MODE)
    called = thing(**options) if is_layer else partial(thing, **options)
    # Its second result is no loss.
    return (lambda *data: called(*data)[0]) if path == "ops.ctc_loss" else called


def _converted(options: dict[str, Any], of_array: Any) -> dict[str, Any]:
    return {name: of_array(value) if isinstance(value, np.ndarray) else value for name, value in options.items()}


def _id(row: Any) -> str:
    return "-".join([row.forms.split()[0], *(f"{name}" for name in row.options)])


@pytest.mark.parametrize("row", rows.ROWS, ids=_id)
def test_losses_with_options_equal_torch(row: Any) -> None:
    options = _converted(row.options, Tensor)
    own = _converted(row.options if row.own is None else row.own, torch.tensor)
    for reduction in row.reductions:
        reference = partial(row.reference, reduction=reduction, **own)
        for path in row.forms.split():
            check(_form(path, {**options, "reduction": reduction}), reference, row.data, rtol=1e-5, atol=3e-6)


def _losses() -> Iterator[str]:
    for path, module in MODULES.items():
        for name, thing in vars(module).items():
            is_operator = path == "ops" and inspect.isclass(thing)
            if _LOSS.fullmatch(name) and callable(thing) and not is_operator:
                yield f"{path}.{name}"


def test_every_loss_has_a_row() -> None:
    listed = {path for row in rows.ROWS for path in row.forms.split()}
    assert all(hasattr(test_losses, test) for test in rows.ELSEWHERE.values())
    assert set(_losses()) - _OTHERS == listed | set(rows.ELSEWHERE)
