"""What the page says of an installation without PyTorch, what runs there, and what scripts are told."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from msdump import mindspore as ms
from msdump.graph.primitive import REGISTRY
from msdump.mindspore import mint, numpy  # noqa: F401  (declare operators)
from msdump.mindspore.kernels.core import CORE
from msdump.mindspore.ops.declaration import DECLARATIONS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "front-ends" / "mindspore.md"
INSTALL = "Install it with pip install 'msdump[torch]'."
CALLS = {
    "LinSpace": "ops.linspace(0.0, 1.0, 5)",
    "ResizeNearestNeighbor": "ops.ResizeNearestNeighbor((2, 2))(x)",
    "Elu": "nn.ELU()(x)",
    "SmoothL1Loss": "nn.SmoothL1Loss()(x, x)",
    "HSwish": "ms.grad(nn.HSwish())(x)",
    "Asin": "ms.grad(ops.asin)(x)",
}


def listed(before: str) -> set[str]:
    """Types of operators in the paragraph after a sentence of the page."""
    paragraph = PAGE.read_text(encoding="utf-8").split(before, 1)[1].strip().split("\n\n")[0]
    return set(re.findall("`(\\w+)`", paragraph))


def test_the_page_names_every_operator_that_needs_pytorch() -> None:
    assert ms.ops is not None
    needs = {name for name, each in REGISTRY.items() if "numpy" not in each.kernels and not is_gradient(name)}
    assert listed("they stop\nwith the line to install:") == needs


def is_gradient(op_type: str) -> bool:
    """Whether it is one that a backward pass adds: the page names the operator that it belongs to."""
    return op_type not in DECLARATIONS and op_type.endswith("Grad")


def test_the_page_names_the_operators_of_the_core() -> None:
    assert listed("with no other library:") == CORE


@pytest.fixture(scope="module")
def computed() -> Any:
    command = [sys.executable, "-m", "tests.mindspore.without_torch"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_core_is_what_the_networks_and_optimizers_compute(computed: Any) -> None:
    assert set(computed["types"]) == CORE
    assert all(map(math.isfinite, computed["losses"].values())), computed["losses"]


def test_every_other_operator_says_what_to_install(computed: Any) -> None:
    refusals = computed["refusals"]
    assert len(refusals) >= len(DECLARATIONS)
    assert {name: text for name, text in refusals.items() if INSTALL not in text or name not in text} == {}


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
assert float(nn.ReLU()(x).asnumpy().max()) > 0
for mode in (ms.GRAPH_MODE, ms.PYNATIVE_MODE):
    ms.set_context(mode=mode)
    for name, call in {CALLS!r}.items():
        try:
            eval(call)
        except RuntimeError as error:
            print(name, mode, " ".join(str(error).split()), sep="|")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
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
