"""Optimizers with their options, and the rule that each of them follows: of `mindspore.nn`, then of `experimental`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from tests.mindspore.nn import optimizer_rules as rules
from tests.mindspore.nn.optimizer_rules import Rule, torch_rule

STEPS = 5
# As epsilon: PyTorch adds it to another number than MindSpore, which then does not matter.
TINY = 1e-14
RATES = [0.1, 0.05, 0.2, 0.1, 0.01]


@dataclass(frozen=True)
class Row:
    """make: (`mindspore.nn`, parameters) -> optimizer; rule: makes what it follows; the others: what the rule gets.

    decays_all   normalisations' weights decay as well, which they do not elsewhere
    """

    make: Callable[[Any, Any], Any]
    rule: Callable[[], Rule]
    rates: float | list[float] = 0.1
    decay: float = 0.0
    decays_all: bool = False
    scale: float = 1.0
    is_centralized: bool = False


def _sgd(**options: Any) -> Callable[[], Rule]:
    return lambda: torch_rule("SGD", **options)


ROWS: dict[str, Row] = {
    "SGD": Row(lambda nn, p: nn.SGD(p, 0.1), _sgd()),
    "SGD decay": Row(lambda nn, p: nn.SGD(p, 0.1, weight_decay=0.2), _sgd(), decay=0.2),
    "SGD momentum": Row(
        lambda nn, p: nn.SGD(p, RATES, 0.9, 0.3, 0.2, False, 4.0),
        _sgd(momentum=0.9, dampening=0.3),
        RATES,
        decay=0.2,
        scale=4.0,
    ),
    "SGD nesterov": Row(
        lambda nn, p: nn.SGD(p, 0.1, 0.9, weight_decay=0.2, nesterov=True),
        _sgd(momentum=0.9, nesterov=True),
        decay=0.2,
    ),
    "Momentum": Row(
        lambda nn, p: nn.Momentum(p, RATES, 0.8, 0.2, 8.0), _sgd(momentum=0.8), RATES, decay=0.2, scale=8.0
    ),
    # The documented formula; MindSpore's kernel for a CPU ignores the option.
    "Momentum nesterov": Row(
        lambda nn, p: nn.Momentum(p, 0.1, 0.8, 0.2, use_nesterov=True), _sgd(momentum=0.8, nesterov=True), decay=0.2
    ),
    "Momentum centralized": Row(
        lambda nn, p: nn.Momentum([{"params": p, "grad_centralization": True}], 0.1, 0.8),
        _sgd(momentum=0.8),
        is_centralized=True,
    ),
    "Adam": Row(
        lambda nn, p: nn.Adam(p, RATES, 0.8, 0.95, TINY, weight_decay=0.2, loss_scale=4.0),
        lambda: torch_rule("Adam", betas=(0.8, 0.95), eps=TINY),
        RATES,
        decay=0.2,
        scale=4.0,
    ),
    "Adam eps": Row(lambda nn, p: nn.Adam(p, 0.1, eps=0.1), lambda: rules.adam(eps=0.1)),
    "Adam nesterov": Row(
        lambda nn, p: nn.Adam(p, 0.1, 0.8, 0.95, use_nesterov=True, weight_decay=0.2),
        lambda: rules.adam(0.8, 0.95, nesterov=True),
        decay=0.2,
    ),
    "Adam amsgrad": Row(
        lambda nn, p: nn.Adam(p, RATES, 0.8, 0.7, TINY, use_amsgrad=True, weight_decay=0.2),
        lambda: torch_rule("Adam", betas=(0.8, 0.7), eps=TINY, amsgrad=True),
        RATES,
        decay=0.2,
    ),
    "Adam amsgrad eps": Row(
        lambda nn, p: nn.Adam(p, 0.1, 0.8, 0.7, 0.1, use_amsgrad=True),
        lambda: rules.adam(0.8, 0.7, 0.1, amsgrad=True),
    ),
    "Adam lazy": Row(
        lambda nn, p: nn.Adam(p, 0.1, eps=TINY, weight_decay=0.2, use_lazy=True),
        lambda: torch_rule("Adam", eps=TINY),
        decay=0.2,
    ),
    "Adam offload": Row(
        lambda nn, p: nn.Adam(p, 0.1, eps=TINY, weight_decay=0.2, use_offload=True),
        lambda: torch_rule("Adam", eps=TINY),
        decay=0.2,
    ),
    "LazyAdam": Row(
        lambda nn, p: nn.LazyAdam(p, RATES, 0.8, 0.95, 0.1, weight_decay=0.2, loss_scale=4.0),
        lambda: rules.adam(0.8, 0.95, 0.1),
        RATES,
        decay=0.2,
        scale=4.0,
    ),
    "LazyAdam nesterov": Row(lambda nn, p: nn.LazyAdam(p, 0.1, use_nesterov=True), lambda: rules.adam(nesterov=True)),
    "AdamWeightDecay": Row(
        lambda nn, p: nn.AdamWeightDecay(p, RATES, 0.8, 0.95, 0.1, 0.2),
        lambda: rules.adam_weight_decay(0.8, 0.95, 0.1),
        RATES,
        decay=0.2,
    ),
    "Lamb": Row(
        lambda nn, p: nn.Lamb(p, RATES, 0.8, 0.95, 0.1, 0.2), lambda: rules.lamb(0.8, 0.95, 0.1), RATES, decay=0.2
    ),
    # The documented formula; MindSpore's kernel for a CPU adds epsilon outside of the root, for 8 weights and more.
    "RMSProp": Row(
        lambda nn, p: nn.RMSProp(p, RATES, 0.7, 0.8, 0.01, loss_scale=4.0, weight_decay=0.2),
        lambda: rules.rms_prop(0.7, 0.8, 0.01),
        RATES,
        decay=0.2,
        scale=4.0,
    ),
    "RMSProp centered": Row(
        lambda nn, p: nn.RMSProp(p, 0.1, 0.7, 0.8, 0.01, centered=True, weight_decay=0.2),
        lambda: rules.rms_prop(0.7, 0.8, 0.01, centered=True),
        decay=0.2,
    ),
    "Adagrad": Row(
        lambda nn, p: nn.Adagrad(p, 0.3, RATES, loss_scale=4.0, weight_decay=0.2),
        lambda: torch_rule("Adagrad", initial_accumulator_value=0.3),
        RATES,
        decay=0.2,
        scale=4.0,
    ),
    # The documented formula; MindSpore's kernel for a CPU ignores the option.
    "ASGD": Row(
        lambda nn, p: nn.ASGD(p, 0.1, 0.3, 0.6, 2.0, weight_decay=0.2),
        lambda: torch_rule("ASGD", lambd=0.3, alpha=0.6, t0=2.0),
        decay=0.2,
    ),
    "Adagrad fixed": Row(
        lambda nn, p: nn.Adagrad(p, 0.3, 0.1, update_slots=False), lambda: rules.constant_adagrad(0.3)
    ),
    "Adadelta": Row(
        lambda nn, p: nn.Adadelta(p, RATES, 0.7, 0.01, 4.0, 0.2),
        lambda: torch_rule("Adadelta", rho=0.7, eps=0.01),
        RATES,
        decay=0.2,
        scale=4.0,
    ),
    # Every weight decays. The documented formula; MindSpore's kernel for a CPU adds l1 where it should subtract it.
    "AdaFactor": Row(lambda nn, p: nn.AdaFactor(p), rules.ada_factor),
    "AdaFactor warmup": Row(
        lambda nn, p: nn.AdaFactor(p, warmup_init=True, clip_threshold=0.5, decay_rate=0.6, eps=(1e-10, 0.1)),
        lambda: rules.ada_factor((1e-10, 0.1), 0.5, 0.6, warmup=True),
    ),
    "AdaFactor rate": Row(
        lambda nn, p: nn.AdaFactor(p, 0.1, beta1=0.0, relative_step=False, scale_parameter=False, weight_decay=0.2),
        lambda: rules.ada_factor(beta1=0.0, is_scaled=False, is_relative=False),
        decay=0.2,
        decays_all=True,
    ),
    "FTRL": Row(
        lambda nn, p: nn.FTRL(p, 0.2, 0.1, -0.5, 0.1, 0.2, loss_scale=4.0, weight_decay=0.2),
        lambda: rules.ftrl(0.2, -0.5, 0.1, 0.2),
        decay=0.2,
        decays_all=True,
        scale=4.0,
    ),
    "FTRL power": Row(lambda nn, p: nn.FTRL(p, lr_power=-0.7, learning_rate=0.1), lambda: rules.ftrl(power=-0.7)),
}


def _same(name: str, theirs: str | None = None, **options: Any) -> Row:
    """An optimizer of `mindspore.experimental.optim` and PyTorch's, with the same options."""
    own = dict(options)
    decay = own.pop("weight_decay", 0.0)
    make = partial(_made, name, options)
    return Row(make, lambda: torch_rule(theirs or name, **own), decay=decay, decays_all=True)


def _made(name: str, options: dict[str, Any], optim: Any, parameters: Any) -> Any:
    return getattr(optim, name)(parameters, lr=0.1, **options)


EXPERIMENTAL: dict[str, Row] = {
    "SGD": _same("SGD", momentum=0.9, dampening=0.3, weight_decay=0.2, maximize=True),
    "SGD nesterov": _same("SGD", momentum=0.9, nesterov=True),
    "Adam": _same("Adam", betas=(0.8, 0.95), eps=TINY, weight_decay=0.2, maximize=True),
    "Adam eps": Row(
        lambda optim, p: optim.Adam(p, 0.1, (0.8, 0.95), 0.1), lambda: rules.adam(0.8, 0.95, 0.1), decays_all=True
    ),
    # The documented formula; MindSpore 2.7 ignores the option.
    "Adam amsgrad": _same("Adam", betas=(0.8, 0.7), eps=TINY, amsgrad=True),
    "AdamW": _same("AdamW", betas=(0.8, 0.95), eps=0.1, weight_decay=0.2, maximize=True),
    "AdamW amsgrad": _same("AdamW", betas=(0.8, 0.7), eps=0.1, weight_decay=0.2, amsgrad=True),
}
REFUSED = {"thor": "needs operators of an Ascend device"}
