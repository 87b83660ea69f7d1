"""Operators of eager PyTorch and statistics of their tensors, by compiled code; msdump_native.pyi documents it.

The compiled part is loaded when it is first used: one that was built for another PyTorch must not be.
"""

from __future__ import annotations

import functools
import math

import torch

# Counts up when msdump gives the observer other arguments than before.
INTERFACE = 3


def _why_not_loaded() -> str:
    try:
        from _msdump_native_built import TORCH_VERSION
    except ImportError:
        return "msdump_native: expected an installed package, got its sources. Run `pip install` on its folder."
    if str(torch.__version__) != TORCH_VERSION:
        return (
            f"msdump_native: expected PyTorch {TORCH_VERSION}, which it was built for, got {torch.__version__}. "
            "Install it again: pip install --no-build-isolation --force-reinstall."
        )
    try:
        import _msdump_native
    except ImportError as error:
        return f"msdump_native: expected compiled code that loads, got: {error}. Install it again."
    if str(torch.__version__) != _msdump_native.TORCH_VERSION:
        return f"msdump_native: expected code for PyTorch {TORCH_VERSION}, got {_msdump_native.TORCH_VERSION}."
    return ""


def _self_test() -> str:
    import _msdump_native as native

    observer = native.Observer()
    with torch.no_grad():
        # Whatever the default device is.
        first = torch.arange(6.0, device="cpu").reshape(2, 3) - 2.0
        second = torch.ones(3, 2, device="cpu")
        try:
            observer.enable()
            product = torch.mm(first, second)
            product.mul_(2.0)
            torch.add(product, first[:, :2])
        except RuntimeError as error:
            return f"msdump_native: expected an observer that can be enabled, got: {error}"
        finally:
            observer.disable()
    batch = observer.take()
    names = [batch["names"][index] for index in batch["operators"]["name"]]
    wanted = ["aten.mm.default", "aten.mul_.Tensor", "aten.slice.Tensor", "aten.add.Tensor"]
    if batch["failure"] or names != wanted:
        return f"msdump_native: expected operators {wanted}, got {names} {batch['failure']}."
    outputs = batch["operands"][batch["operands"]["role"] == 2]["tensor"]
    last = batch["tensors"][outputs[-1]]
    found = batch["measurements"][last["measurement"]]
    # [[-3, -3], [6, 6]] * 2 + [[-2, -1], [1, 2]]
    wanted_numbers = (14.0, -8.0, 12.0, math.sqrt(64 + 49 + 169 + 196), 2, 2)
    numbers = tuple(float(found[name]) for name in ("maximum", "minimum", "sum", "norm", "negative", "positive"))
    if numbers != wanted_numbers or batch["tensors"][outputs[1]]["version"] != 1:
        return f"msdump_native: expected the numbers {wanted_numbers}, got {numbers}."
    return ""


@functools.cache
def check() -> str:
    why = _why_not_loaded()
    if why:
        return why
    from torch.utils._python_dispatch import _disable_current_modes

    with _disable_current_modes():
        return _self_test()


@functools.cache
def _binary(capability: tuple[int, int]) -> bytes:
    import _msdump_native_cuda

    return _msdump_native_cuda.compiled(capability, _msdump_native_cuda.nvrtc())


@functools.cache
def use_cuda(index: int) -> str:
    import _msdump_native as native

    try:
        native.load_cuda(index, _binary(torch.cuda.get_device_capability(index)))
        tensor = torch.arange(-5.0, 7.0, device=f"cuda:{index}").reshape(3, 4)[:, 1:].t()
        (found,) = native.measure(tensor)
    except (OSError, RuntimeError, ValueError) as error:
        return f"msdump_native: expected statistics on cuda:{index}, got: {error}"
    # [[-4, -3, -2], [0, 1, 2], [4, 5, 6]]
    wanted = (6.0, -4.0, 9.0, 111.0, 3, 1)
    numbers = tuple(float(found[name]) for name in ("maximum", "minimum", "sum", "squares", "negative", "zero"))
    return "" if numbers == wanted else f"msdump_native: expected the numbers {wanted} on cuda:{index}, got {numbers}."


def __getattr__(name: str) -> object:
    if name in ("Observer", "Numbers", "Frames", "measure", "INSTRUCTIONS", "REASONS", "TORCH_VERSION"):
        why = _why_not_loaded()
        if why:
            raise ImportError(why)
        import _msdump_native

        return getattr(_msdump_native, name)
    raise AttributeError(name)
