"""`mindspore.experimental.optim.lr_scheduler`: schedules of the learning rates of an optimizer's groups."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from msdump.mindspore.common.declared import KINDS, Declared
from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.experimental.optim.optimizer import Optimizer
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.sources import user_line
from msdump.mindspore.tracer import current_tracer


def _set(parameter: Parameter, value: float) -> None:
    parameter.set_data(Tensor(np.array(value, np.float32)))


def _held(parameter: Parameter) -> Tensor:
    """What it holds now, as a tensor that stays so."""
    return Tensor(parameter.asnumpy().copy())


def _number(name: str, value: float) -> Parameter:
    return Parameter(Tensor(np.float32(value)), name, requires_grad=False)


class LRScheduler:
    """Base of schedules. Subclasses write `get_lr()`: the rate of each group in epoch `last_epoch`.

    base_lrs     rates at the start
    last_epoch   number of the epoch, a Parameter
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        self._last_lr = list(optimizer.lrs)
        KINDS["epochs"](type(self).__name__, "last_epoch", last_epoch)
        if last_epoch < -1:
            raise ValueError(f"Invalid last_epoch: {last_epoch}")
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch != -1 and "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming an optimizer"
                )
            group.setdefault("initial_lr", group["lr"].value())
        self.base_lrs = [float(group["initial_lr"]) for group in optimizer.param_groups]
        self.groups_num = len(self.base_lrs)
        self.last_epoch = _number(f"last_epoch_{type(self).__name__}", last_epoch)
        self.step()

    def get_last_lr(self) -> list[Tensor]:
        """The rate of each group."""
        return [_held(rate) for rate in self._last_lr]

    def get_lr(self) -> Sequence[Any]:
        raise NotImplementedError(f"{type(self).__name__}: expected a get_lr() method.")

    def _check_place(self) -> None:
        tracer = current_tracer()
        if tracer is not None and not tracer.is_recording:
            raise RuntimeError(
                f"{user_line()}: expected {type(self).__name__}.step() between the steps of a training, got it in a "
                "function that is compiled. Call it after that function."
            )

    def step(self, epoch: Any = None) -> bool:
        """Go to the next epoch, or to this one."""
        self._check_place()
        _set(self.last_epoch, int(self.last_epoch) + 1 if epoch is None else float(epoch))
        closed = getattr(self, "_get_closed_form_lr", None)
        rates = self.get_lr() if epoch is None or closed is None else closed()
        for memory, rate in zip(self._last_lr, rates, strict=True):
            _set(memory, float(rate))
        return True


def _stand_in(optimizer: Optimizer) -> Any:
    """PyTorch's optimizer with the groups of this one, one for all of its schedules."""
    import torch

    made = vars(optimizer).get("_stand_in")
    if made is None:
        made = torch.optim.SGD([{"params": [torch.zeros(1)]} for _ in optimizer.param_groups], 1.0)
        made._opt_called = True  # type: ignore[attr-defined]  # or it warns of a step that it does not see
        object.__setattr__(optimizer, "_stand_in", made)
    return made


class _OfTorch(Declared, LRScheduler):
    """Base of schedules that PyTorch computes: rates go to a stand-in of the optimizer, and come back."""

    def _set_up(self, optimizer: Optimizer, **settings: Any) -> None:
        import torch

        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer, self._last_lr = optimizer, list(optimizer.lrs)
        vars(self).update(settings)
        name, last = type(self).__name__, settings.get("last_epoch", -1)
        for own, other in zip(optimizer.param_groups, _stand_in(optimizer).param_groups, strict=True):
            if last == -1:
                own.setdefault("initial_lr", own["lr"].value())
            elif "initial_lr" in own:
                other["initial_lr"] = float(own["initial_lr"])
        with self._followed() as stand_in:
            self._own = getattr(torch.optim.lr_scheduler, name)(stand_in, **self._of_torch(**settings))
        self.base_lrs = [float(rate) for rate in getattr(self._own, "base_lrs", ())]
        self.groups_num = len(self._last_lr)
        self.last_epoch = _number(f"last_epoch_{name}", self._own.last_epoch)

    def _of_torch(self, **settings: Any) -> dict[str, Any]:
        """The settings as PyTorch takes them."""
        if "schedulers" in settings:
            if any(each.optimizer is not self.optimizer for each in settings["schedulers"]):
                raise ValueError("Sequential Schedulers expects all schedulers to belong to the same optimizer.")
            settings["schedulers"] = [each._own for each in settings["schedulers"]]
        if "lr_lambda" in settings:
            given = settings["lr_lambda"]
            functions = list(given) if isinstance(given, list | tuple) else [given] * len(self._last_lr)
            settings["lr_lambda"] = [lambda epoch, f=f: float(f(Tensor(np.float32(epoch)))) for f in functions]
        return settings | {"cycle_momentum": False} if "scale_mode" in settings else settings

    @contextmanager
    def _followed(self) -> Iterator[Any]:
        stand_in = _stand_in(self.optimizer)
        for group, rate in zip(stand_in.param_groups, self._last_lr, strict=True):
            group["lr"] = float(rate)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield stand_in
        for group, memory in zip(stand_in.param_groups, self._last_lr, strict=True):
            _set(memory, float(group["lr"]))

    def get_lr(self) -> list[float]:
        return [float(rate) for rate in self._last_lr]

    def step(self, *number: Any) -> bool:
        """Go to the next epoch, or to this one; a plateau takes the metric of the epoch."""
        self._check_place()
        with self._followed():
            self._own.step(*(each if each is None else float(each) for each in number))
        _set(self.last_epoch, self._own.last_epoch)
        return True

    def in_cooldown(self) -> bool:
        """Does a plateau wait for the last change of the rate to show?"""
        return bool(self._own.in_cooldown)


_TABLE = {
    "StepLR": ("step_size:epochs gamma:factor=0.1", "Times gamma every step_size epochs."),
    "MultiStepLR": ("milestones:list gamma:factors=0.1", "Times gamma at each of the milestones."),
    "ExponentialLR": ("gamma:factor", "Times gamma in every epoch."),
    "ConstantLR": ("factor=0.3333333333333333 total_iters:epochs=5", "Times a factor until epoch total_iters."),
    "LinearLR": (
        "start_factor=0.3333333333333333 end_factor=1.0 total_iters:epochs=5",
        "Times a factor that goes from start_factor to end_factor until epoch total_iters.",
    ),
    "PolynomialLR": ("total_iters:epochs=5 power:amount=1.0", "Falls to 0 in epoch total_iters, as a power."),
    "CosineAnnealingLR": ("T_max:epochs eta_min:factors=0.0", "Falls to eta_min in T_max epochs, and rises again."),
    "CosineAnnealingWarmRestarts": ("T_0 T_mult=1 eta_min:factors=0", "Half a cosine again and again."),
    "CyclicLR": (
        "base_lr max_lr step_size_up=2000 step_size_down=None mode='triangular' gamma=1.0 scale_fn=None "
        "scale_mode='cycle'",
        "Between base_lr and max_lr, up and down.",
    ),
    "LambdaLR": ("lr_lambda", "The rate at the start times a function of the epoch, one for all groups or of each."),
    "MultiplicativeLR": ("lr_lambda", "The last rate times a function of the epoch."),
    "SequentialLR": ("schedulers milestones", "Several schedules, one after the other: each starts at its milestone."),
}


for _name, (_takes, _doc) in _TABLE.items():
    _own = {"__doc__": _doc, "__module__": __name__}
    globals()[_name] = type(_name, (_OfTorch,), _own, takes=f"optimizer {_takes} last_epoch=-1")


class ReduceLROnPlateau(
    _OfTorch,
    takes="optimizer mode='min' factor=0.1 patience=10 threshold=0.0001 threshold_mode='rel' cooldown=0 min_lr=0 "
    "eps=1e-08",
):
    """Times a factor when a metric has not become better for more than `patience` epochs."""


publish(__name__)

__getattr__ = explain_missing(__name__)
