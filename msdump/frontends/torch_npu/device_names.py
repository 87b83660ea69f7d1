"""Maps the device name "npu" to an available device."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Any

import torch

from msdump.frontends.torch_npu import npu
from msdump.process.front_ends import front_end

_FUNCTIONS = (
    "arange",
    "as_tensor",
    "asarray",
    "bartlett_window",
    "blackman_window",
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "eye",
    "full",
    "full_like",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "normal",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "scalar_tensor",
    "set_default_device",
    "sparse_bsc_tensor",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo_tensor",
    "sparse_csc_tensor",
    "sparse_csr_tensor",
    "tensor",
    "tril_indices",
    "triu_indices",
    "zeros",
    "zeros_like",
    "load",
)
_METHODS = ("new_empty", "new_full", "new_ones", "new_tensor", "new_zeros", "to")


def real_device() -> str:
    """Device that stands for the NPU."""
    return "cuda" if torch.cuda.is_available() else "cpu"


@functools.cache
def say_stand_in() -> None:
    """Say what stands for the NPU, when the script uses one: libraries look for this package in every program."""
    logging.getLogger("msdump").warning(
        'torch_npu is not installed: `import torch_npu` gives a stand-in, and device "npu" is %s in this run.',
        real_device().upper(),
    )


def _note_npu() -> None:
    """The script uses a device of this name. Dynamo, which traces this in a compiled model, leaves it out."""
    if not torch.compiler.is_compiling():
        say_stand_in()


def install() -> bool:
    """Teach torch the name; False when that was done before."""
    if hasattr(torch, "npu"):
        return False
    # torch then takes "npu:0" as a device, so that only those who make tensors must be taught what it means.
    untyped: Any = torch
    untyped.utils.rename_privateuse1_backend("npu")
    untyped._register_device_module("npu", npu)
    for name in _FUNCTIONS:
        _wrap(torch, name)
    for name in ("fftfreq", "rfftfreq"):
        _wrap(torch.fft, name)
    for name in _METHODS:
        _wrap(torch.Tensor, name)
    _wrap(torch.nn.Module, "to")
    _wrap(torch.autocast, "__init__")
    _wrap(torch.distributed, "init_process_group")
    _serve_backend()
    tensor_class: Any = torch.Tensor
    module_class: Any = torch.nn.Module
    tensor_class.npu = _to_npu
    module_class.npu = _to_npu
    tensor_class.is_npu = property(lambda tensor: tensor.device.type == real_device())
    return True


def _serve_backend() -> None:
    """`torch.compile(model, backend="npu")` compiles as TorchAir does with its defaults.

    The name is answered here: telling PyTorch's own list of backends would import its compiler, which takes seconds.
    """
    untyped: Any = torch
    original = untyped.compile

    @functools.wraps(original)
    def compile_function(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("backend") == "npu":
            kwargs["backend"] = front_end("torchair", "backend").get_npu_backend()
        return original(*args, **kwargs)

    untyped.compile = compile_function


def _to_npu(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
    """`.npu()` of tensors and modules."""
    _note_npu()
    index = device.index if isinstance(device, torch.device) else device
    name = real_device()
    return self.to(f"{name}:{index}" if isinstance(index, int) and name == "cuda" else name)


def _translated(value: Any) -> Any:
    """The device that a name or device of an NPU stands for; anything else as it is."""
    if isinstance(value, torch.device):
        if value.type != "npu":
            return value
        _note_npu()
        return torch.device("cuda", value.index or 0) if real_device() == "cuda" else torch.device("cpu")
    if isinstance(value, str):
        if value == "npu" or value.startswith("npu:"):
            _note_npu()
            return value.replace("npu", "cuda", 1) if real_device() == "cuda" else "cpu"
        if value == "hccl":  # the NPU's collective communication
            _note_npu()
            return "nccl" if real_device() == "cuda" else "gloo"
    return value


def _wrap(owner: Any, name: str) -> None:
    original: Callable[..., Any] | None = getattr(owner, name, None)
    if original is None:  # torch without distributed
        return

    @functools.wraps(original)
    def translating(*args: Any, **kwargs: Any) -> Any:
        new_kwargs = {key: _translated(value) for key, value in kwargs.items()}
        return original(*[_translated(value) for value in args], **new_kwargs)

    setattr(owner, name, translating)
