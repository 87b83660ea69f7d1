"""Every entry point of PyTorch leaves tensors that a script may still resize, as FSDP does."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import msdump.torchair as torchair

torch = pytest.importorskip("torch")

from msdump.frontends.torch import backend as msdump_backend  # noqa: E402
from msdump.torchair import npugraph_ex  # noqa: E402
from msdump.torchair.debug_save import debug_log  # noqa: E402
from tests.frontends.torch import dumping  # noqa: E402

pytestmark = pytest.mark.usefixtures("own_dump")


class Net(torch.nn.Module):
    """A parameter, a buffer that is written, a constant of the graph, an output."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(4, 4))
        self.total: Any
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: Any) -> Any:
        self.total.add_(x.detach().sum(0))
        return x @ self.weight.t() + torch.tensor([1.0, 2.0, 3.0, 4.0])


def torchair_backend(mode: str, **options: Any) -> Any:
    config = torchair.CompilerConfig()
    config.mode = mode
    for path, value in options.items():
        *groups, last = path.split("__")
        group: Any = config
        for name in groups:
            group = getattr(group, name)
        setattr(group, last, value)
    return torchair.get_npu_backend(compiler_config=config)


def eager_dump(folder: Path) -> Any:
    return torchair_backend("max-autotune", debug__data_dump__type="npy", debug__data_dump__path=str(folder))


def ge_dump(folder: Path) -> Any:
    return torchair_backend("max-autotune", dump_config__enable_dump=True, dump_config__dump_path=str(folder))


def graph_dump(folder: Path) -> Any:
    return torchair_backend("max-autotune", debug__graph_dump__type="txt", debug__graph_dump__path=str(folder))


def aclgraph_dump(folder: Path) -> Any:
    return torchair_backend("npugraph_ex", dump_config__enable_dump=True, dump_config__dump_path=str(folder))


def npugraph_ex_dump(folder: Path) -> Any:
    def compile_graph(module: Any, inputs: Any) -> Any:
        return npugraph_ex.backend(module, inputs, options={"dump_tensor_data": True, "data_dump_dir": str(folder)})

    return compile_graph


def resize_all(function: Callable[..., Any], model: Net) -> None:
    x = torch.ones(4, 4, requires_grad=True)
    y = function(x)
    y.sum().backward()
    assert torch.equal(model.total, torch.full((4,), 4.0))
    for tensor in (x, y, model.weight, model.total, x.grad, model.weight.grad):
        values = tensor.detach()
        values.untyped_storage().resize_(0)
        values.untyped_storage().resize_(1024)
        values.resize_(8, 8)


@pytest.mark.parametrize("saved_data", ["tensor", "statistic"])
@pytest.mark.parametrize("is_sync", [True, False], ids=["sync", "async"])
def test_after_a_dump_of_the_backend(
    is_sync: bool, saved_data: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dumping.configure(tmp_path, monkeypatch, is_sync=is_sync, saved_data=saved_data)
    model = Net()
    resize_all(torch.compile(model, backend=msdump_backend), model)
    assert dumping.close().tensors_written > 0


@pytest.mark.parametrize("is_saved", [False, True], ids=["dump alone", "dump and debug save"])
@pytest.mark.parametrize("make", [eager_dump, ge_dump, graph_dump, aclgraph_dump, npugraph_ex_dump])
def test_after_a_dump_of_torchair(
    make: Callable[[Path], Any], is_saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_saved:
        monkeypatch.setenv(debug_log.TORCH_DEBUG, "1")
        monkeypatch.setattr(torch._dynamo.utils, "add_file_handler", contextlib.ExitStack)
    folder = tmp_path / "dump"
    folder.mkdir()
    model = Net()
    with torch._dynamo.config.patch(debug_dir_root=str(tmp_path / "debug")):
        resize_all(torch.compile(model, backend=make(folder)), model)
    assert any(folder.iterdir())
