"""`Cell.set_inputs`: open dimensions, what fits them, and what a dump through ACL makes of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import msdump.mindspore as ms
from msdump.engine import opening
from msdump.errors import GraphError
from msdump.mindspore import Tensor, nn, ops
from msdump.process import sessions


class Net(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.relu = nn.ReLU()

    def construct(self, x: Tensor) -> Any:
        return ops.exp(self.relu(x))


def numbers(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32))


def test_an_open_tensor_has_a_type_and_no_data() -> None:
    tensor = Tensor(shape=[None, 3], dtype=ms.float32)
    assert tensor.shape == (-1, 3)
    assert tensor.dtype == ms.float32
    with pytest.raises(GraphError, match=r"It is for Cell\.set_inputs alone"):
        tensor.asnumpy()
    with pytest.raises(GraphError, match=r"It is for Cell\.set_inputs alone"):
        Net()(tensor)
    with pytest.raises(ValueError, match="expected a dtype"):
        Tensor(shape=[None, 3])


@pytest.mark.usefixtures("either_mode")
@settings(max_examples=25, deadline=None)
@given(
    declared=st.lists(st.sampled_from([None, 1, 2, 3]), min_size=1, max_size=3),
    actual=st.lists(st.integers(1, 3), min_size=1, max_size=3),
)
def test_calls_fit_what_is_declared(declared: list[int | None], actual: list[int]) -> None:
    net = Net()
    net.set_inputs(Tensor(shape=declared, dtype=ms.float32))
    assert net.has_open_inputs == (None in declared)
    fits = len(declared) == len(actual) and all(
        size in (None, other) for size, other in zip(declared, actual, strict=True)
    )
    if fits:
        assert net(numbers(*actual)).shape == tuple(actual)
    else:
        with pytest.raises(ValueError, match="set_inputs: expected Float32 of shape"):
            net(numbers(*actual))


def test_other_calls_that_do_not_fit() -> None:
    net = Net()
    net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float16))
    problem = r"expected \w*16 of shape \[None, 3\] as input 0, got \w*32 of shape \[2, 3\]"
    with pytest.raises(ValueError, match=problem):
        net(numbers(2, 3))
    with pytest.raises(ValueError, match="expected 1 inputs as declared, got 2"):
        net(numbers(2, 3), numbers(2, 3))
    with pytest.raises(ValueError, match="expected a tensor as input 0, got int"):
        net(3)


@pytest.fixture
def acl_dump(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    common: dict[str, Any] = {
        "dump_mode": 0, "path": str(tmp_path / "dump"), "net_name": "Net", "iteration": "all", "saved_data": "tensor",
        "input_output": 2, "kernels": [], "support_device": [0], "op_debug_mode": 0, "file_format": "npy",
    }  # fmt: skip
    (tmp_path / "dump.json").write_text(json.dumps({"common_dump_settings": common}))
    for name in ("MINDSPORE_DUMP_CONFIG", "MS_ACL_DUMP_CFG_PATH"):
        monkeypatch.setenv(name, str(tmp_path / "dump.json"))
    sessions.reset_for_tests()
    yield tmp_path / "dump"
    sessions.reset_for_tests()


@pytest.mark.parametrize("mode", [ms.GRAPH_MODE, ms.PYNATIVE_MODE])
@pytest.mark.parametrize("is_open", [True, False])
def test_operators_of_dynamic_shape_have_folders_of_their_own(acl_dump: Path, is_open: bool, mode: int) -> None:
    ms.set_context(mode=mode, device_target="Ascend", jit_config={"jit_level": "O0"})
    net = Net()
    if is_open:
        net.set_inputs(Tensor(shape=[None, 3], dtype=ms.float32))
    for size in (2, 4):
        net(numbers(size, 3))
    opened = opening.current()
    assert opened is not None
    opened.close()
    paths = (path.relative_to(acl_dump).as_posix() for path in acl_dump.rglob("*.output.0.*.npy"))
    found = {re.sub(r"-op\d+\.\d+\.\d+\.\d{16}", "", re.sub(r"/\d{14}/", "/TIME/", path)) for path in paths}
    names = {"ReLU.ReLU.output.0.ND.npy", "Exp.Exp.output.0.ND.npy"}
    assert found >= {f"{step}/TIME/0/{f'{step}/' if is_open else ''}{name}" for step in (0, 1) for name in names}
    assert not [path for path in found if path.startswith("0/TIME/0/0/") != is_open and path.startswith("0/")]
