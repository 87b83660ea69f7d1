"""Programs that enter guards of PyTorch, each of which changes what a thread does with operators, and leave them.

A guard is a function that makes a new one each time; where it has a decorator, that is used too.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

Guard = Callable[[], Any]
STEPS = 5


class OtherMode(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A mode of the script's own."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


class OtherFunctionMode(TorchFunctionMode):
    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def inference_but_for_a_part() -> Iterator[None]:
    with torch.inference_mode(), torch.inference_mode(False):
        yield


@contextlib.contextmanager
def fake_tensors_before() -> Iterator[None]:
    """The mode of fake tensors is entered and left; what follows are real ones."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        torch.ones(2) + 1
    yield


@contextlib.contextmanager
def no_grad_set() -> Iterator[None]:
    """The function sets it when it is called."""
    with torch.set_grad_enabled(False):
        yield


BLOCKS: dict[str, Guard] = {
    "inference_mode": torch.inference_mode,
    "inference_mode(False)": lambda: torch.inference_mode(False),
    "inference_mode inside of another": inference_but_for_a_part,
    "inference_mode of C++": lambda: torch._C._InferenceMode(False),
    "no_grad": torch.no_grad,
    "enable_grad": torch.enable_grad,
    "set_grad_enabled": no_grad_set,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "dual_level": forward_ad.dual_level,
    "device": lambda: torch.device("cpu"),
    "saved_tensors_hooks": lambda: torch.autograd.graph.saved_tensors_hooks(torch.clone, lambda each: each),
    "save_on_cpu": torch.autograd.graph.save_on_cpu,
    "fake tensors": fake_tensors_before,
    "dispatch mode": OtherMode,
    "function mode": OtherFunctionMode,
    "the same keys": lambda: torch._C._ForceDispatchKeyGuard(
        torch._C._dispatch_tls_local_include_set(), torch._C._dispatch_tls_local_exclude_set()
    ),
}
# Those that are decorators, too.
DECORATORS = (
    "inference_mode", "inference_mode(False)", "inference_mode inside of another", "no_grad", "enable_grad", "autocast",
    "set_grad_enabled",
)  # fmt: skip


def _of_vmap(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.vmap(model)(x)


def _of_grad(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda value: model(value).square().sum())(x)


def _of_jvp(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.func.jvp(model, (x,), (x,))[1]


def _of_functional_call(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    parameters = {name: each * 2 for name, each in model.named_parameters()}
    return torch.func.functional_call(model, parameters, (x,))  # type: ignore[no-any-return]


def _of_dual_numbers(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(model(forward_ad.make_dual(x, x.cos()))).tangent


def _of_checkpoint(is_reentrant: bool) -> Callable[[nn.Module, torch.Tensor], torch.Tensor]:
    def run(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
        x = x.clone().requires_grad_()
        y = checkpoint(model, x, use_reentrant=is_reentrant)
        y.square().sum().backward()
        assert x.grad is not None
        return x.grad

    return run


def _of_hook(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    """A model is called in a backward pass."""
    found: list[torch.Tensor] = []
    x = x.clone().requires_grad_()
    x.register_hook(lambda gradient: found.append(model(gradient).detach()))
    model(x).square().sum().backward()
    return found[0]


def _of_trace(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.trace(model, x)(x)  # type: ignore[no-any-return, no-untyped-call]


def _of_export(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    return torch.export.export(model, (x,)).module()(x)  # type: ignore[no-any-return]


def _of_make_fx(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    from torch.fx.experimental.proxy_tensor import make_fx

    return make_fx(model)(x)(x)  # type: ignore[no-any-return]


# Calls of the model by what runs it in parts, again, or not at all.
CALLS: dict[str, Callable[[nn.Module, torch.Tensor], torch.Tensor]] = {
    "vmap": _of_vmap,
    "func.grad": _of_grad,
    "func.jvp": _of_jvp,
    "functional_call": _of_functional_call,
    "dual numbers": _of_dual_numbers,
    "checkpoint that is reentrant": _of_checkpoint(True),
    "checkpoint that is not": _of_checkpoint(False),
    "hook of a backward": _of_hook,
    "jit.trace": _of_trace,
    "export": _of_export,
    "make_fx": _of_make_fx,
}


def small_model() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))


def in_block(guard: Guard) -> Callable[[Callable[[], torch.Tensor]], torch.Tensor]:
    def run(call: Callable[[], torch.Tensor]) -> torch.Tensor:
        with guard():
            return call()

    return run


def decorated(guard: Guard) -> Callable[[Callable[[], torch.Tensor]], torch.Tensor]:
    return lambda call: guard()(call)()  # type: ignore[no-any-return]


# Which of the steps run inside of the guard.
PLACES = {"first": (0,), "last": (STEPS - 1,), "some": (1, 3), "all": range(STEPS)}


def evaluation(
    inside: Callable[[Callable[[], torch.Tensor]], torch.Tensor],
    place: str,
    made: Callable[[], nn.Module] = small_model,
) -> list[torch.Tensor]:
    """Calls of a model, some in a guard, with operators between them."""
    torch.manual_seed(0)
    model, x = made(), torch.randn(3, 4)
    found = []
    for step in range(STEPS):

        def call(step: int = step) -> torch.Tensor:
            return model(x * (step + 1))  # type: ignore[no-any-return]

        found += [inside(call) if step in PLACES[place] else call(), torch.ones(2) * step]
    return [each.clone() for each in found]


def training(inside: Callable[[Callable[[], torch.Tensor]], torch.Tensor], place: str) -> list[torch.Tensor]:
    """Steps of training, and evaluations in a guard before some of them, or after the last one."""
    torch.manual_seed(0)
    model, x = small_model(), torch.randn(3, 4)
    optimizer = torch.optim.AdamW(model.parameters(), 0.1)
    found = []
    for step in range(STEPS):

        def evaluated() -> torch.Tensor:
            return model(x + 1).sum()  # type: ignore[no-any-return]

        if step in PLACES[place] and place != "last":
            found.append(inside(evaluated))
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
        if step in PLACES[place] and place == "last":
            found.append(inside(evaluated))
    return [*(each.clone() for each in found), *(each.detach() for each in model.parameters())]


def calls(
    call: Callable[[nn.Module, torch.Tensor], torch.Tensor], place: str, made: Callable[[], nn.Module] = small_model
) -> list[torch.Tensor]:
    """As `evaluation`, where some calls are made by something of PyTorch's."""
    torch.manual_seed(0)
    model, x = made(), torch.randn(3, 4)
    found = []
    for step in range(STEPS):
        own = x * (step + 1)
        found += [call(model, own) if step in PLACES[place] else model(own), torch.ones(2) * step]
    return [each.detach().clone() for each in found]
