"""Optimizers as scripts make them. The same text makes them with MindSpore, which gave the weights of the tests."""

from __future__ import annotations

from typing import Any

# (weights, gradients of three steps); a matrix named "w" and a normalisation's vector named "gamma".
WEIGHT = [[0.5, -1.25], [2.0, 0.125]]
SCALE = [1.0, -0.75]
FACTORS = (1.0, -0.5, 2.0)
GRADIENT = [[0.25, -0.5], [1.5, 0.75]]
SCALE_GRADIENT = [-0.125, 0.5]


def cases(nn: Any) -> dict[str, Any]:
    """Name -> function of the parameters."""

    class Decay(nn.Cell):  # type: ignore[misc]
        """A weight decay that falls with the step."""

        def construct(self, step: Any) -> Any:
            return 0.5 / (step + 1.0)

    return {
        "adagrad": lambda p: nn.Adagrad(p, learning_rate=0.1, weight_decay=0.1, loss_scale=2.0),
        "adadelta": lambda p: nn.Adadelta(p, 0.5),
        "adam": lambda p: nn.Adam(p, 0.1, weight_decay=0.1, use_nesterov=True),
        "amsgrad": lambda p: nn.Adam(p, 0.1, use_amsgrad=True),
        "lazy_adam": lambda p: nn.LazyAdam(p, 0.1),
        "adam_weight_decay": lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=Decay()),
        "ada_factor": lambda p: nn.AdaFactor(p),
        "ada_factor_rate": lambda p: nn.AdaFactor(
            p, learning_rate=0.1, relative_step=False, weight_decay=0.1, beta1=0.0, scale_parameter=False
        ),
        "ftrl": lambda p: nn.FTRL(p, learning_rate=0.5, l2=0.2, weight_decay=0.1),
        "decay_cell": lambda p: nn.Momentum(p, 0.1, 0.9, weight_decay=Decay(), loss_scale=4.0),
        "groups": lambda p: nn.Momentum(
            [{"params": p[:1], "lr": 0.2, "weight_decay": 0.5}, {"params": p[1:]}], 0.1, 0.9, weight_decay=0.25
        ),
        "groups_of_schedules": lambda p: nn.RMSProp(
            [{"params": p[1:], "lr": nn.PolynomialDecayLR(0.2, 0.01, 4, 2.0)}, {"params": p[:1]}, {"order_params": p}],
            nn.InverseDecayLR(0.1, 0.5, 2),
        ),
        "natural_exp": lambda p: nn.SGD(p, nn.NaturalExpDecayLR(0.1, 0.9, 4, True), 0.9),
    }
