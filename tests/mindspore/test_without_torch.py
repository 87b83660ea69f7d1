"""What the page says of an installation without PyTorch, and what scripts are told there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from msdump import mindspore as ms
from msdump.graph.primitive import REGISTRY
from msdump.mindspore import mint, numpy  # noqa: F401  (declare operators)
from msdump.mindspore.kernels.torch_operator import op_types
from msdump.mindspore.ops.declaration import DECLARATIONS

PAGE = Path(__file__).parents[2] / "docs" / "front-ends" / "mindspore.md"
INSTALL = "Install it with pip install 'msdump[torch]'."
CALLS = {
    "LinSpace": "ops.linspace(0.0, 1.0, 5)",
    "ResizeNearestNeighbor": "ops.ResizeNearestNeighbor((2, 2))(x)",
    "Elu": "nn.ELU()(x)",
    "SmoothL1Loss": "nn.SmoothL1Loss()(x, x)",
    "HSwishGrad": "ms.grad(nn.HSwish())(x)",
    "AsinGrad": "ms.grad(ops.asin)(x)",
}


def listed(before: str) -> set[str]:
    """Types of operators in the paragraph after a sentence of the page."""
    paragraph = PAGE.read_text(encoding="utf-8").split(before, 1)[1].strip().split("\n\n")[0]
    return set(re.findall("`(\\w+)`", paragraph))


def test_the_page_names_every_operator_that_needs_pytorch() -> None:
    assert ms.ops is not None
    needs = {name for name, each in DECLARATIONS.items() if each.by_numpy is None}
    gradients = {name for name, each in DECLARATIONS.items() if each.by_numpy is not None and each.has_gradient}
    by_hand = {name for name in op_types - set(DECLARATIONS) if "numpy" in REGISTRY[name].kernels}
    assert listed("stop with the line to\ninstall:") == needs
    assert listed("and PyTorch their gradients:") == gradients | by_hand


@pytest.fixture(scope="module")
def messages() -> dict[str, str]:
    """What each call raises in a Python without PyTorch, in both modes."""
    code = f"""
import sys
sys.modules["torch"] = None
import numpy as np
import msdump
msdump.install_aliases(prefer_real=False)
import mindspore as ms
from mindspore import Tensor, nn, ops
x = Tensor(np.ones((1, 1, 4, 4), np.float32))
assert float(nn.HSwish()(x).asnumpy().max()) > 0
for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode)
    for name, call in {CALLS!r}.items():
        try:
            eval(call)
        except RuntimeError as error:
            print(name, mode, " ".join(str(error).split()), sep="|")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    rows = (line.split("|", 2) for line in done.stdout.splitlines())
    return {f"{name} {mode}": text for name, mode, text in rows}


@pytest.mark.parametrize("mode", [0, 1], ids=["graph", "pynative"])
@pytest.mark.parametrize("name", CALLS)
def test_an_operator_that_needs_pytorch_names_the_line_to_install(
    messages: dict[str, str], name: str, mode: int
) -> None:
    text = messages[f"{name} {mode}"]
    assert name in text and "expected PyTorch" in text
    assert INSTALL in text
