"""What changed between releases of MindSpore, and which release a script sees: one row for each difference.

Source: MindSpore 2.0.0 and 2.7.0 on a CPU, and the documentation of the releases between. A difference between both of
which the documentation does not name the release counts as one of 2.1, so that the default release is like 2.7.0.
"""

from __future__ import annotations

from dataclasses import dataclass

from msdump.config.environment import mindspore_release


@dataclass(frozen=True)
class Change:
    """A difference between releases.

    since          (major, minor) of the first release that has it
    before, after  what earlier releases do, and what that release and later ones do; Markdown
    """

    subject: str
    since: tuple[int, int]
    before: str
    after: str

    @property
    def is_in_force(self) -> bool:
        """Does the chosen release have it?   Raises: ConfigError for a release that does not exist."""
        return mindspore_release() >= self.since


LAYER_INITIALIZERS = Change(
    "first values of `nn.Dense`, `Conv1d`, `Conv2d`, `Conv3d` and the transposed convolutions",
    (2, 1),
    "weights `Normal(0.01)`, biases zero",
    "weights `HeUniform(sqrt(5))`, biases `Uniform(1 / sqrt(fan_in))`",
)

SGD_DECAY = Change(
    "`weight_decay` of `nn.SGD`",
    (2, 1),
    "part of the operator `SGD`; every parameter decays",
    "`Mul` and `AddN` before it; without groups, parameters with `beta` or `gamma` in their name do not decay",
)
STEP_COUNT = Change(
    "`global_step` of optimizers",
    (2, 1),
    "`get_lr()` counts, with `AssignAdd`, where a learning rate or a weight decay depends on the step",
    "every step of every optimizer counts; `get_lr()` does not",
)
TRANSFORMER_NAMES = Change(
    "the two dense layers of `nn.TransformerEncoderLayer`", (2, 1), "`linear1` and `linear2`", "`dense1` and `dense2`"
)

DIVISION = Change("operator of `x / y` and of functions that divide", (2, 1), "`RealDiv`", "`Div`")
LARGEST = Change(
    "operator of the largest element in `ops.logsumexp` and `ops.cross_entropy`",
    (2, 1),
    "`ArgMaxWithValue`",
    "`ReduceMax`",
)
GROUP_NORM = Change(
    "operators of `nn.GroupNorm`",
    (2, 1),
    "`ReduceMean`, `Sub`, `Square`, `ReduceSum`, divisions, `Sqrt`, `Mul`, `Add`",
    "`GroupNorm`",
)

CHANGES = (LAYER_INITIALIZERS, SGD_DECAY, STEP_COUNT, TRANSFORMER_NAMES, DIVISION, LARGEST, GROUP_NORM)


def release_name() -> str:
    """What `mindspore.__version__` is: the first version of the chosen release."""
    major, minor = mindspore_release()
    return f"{major}.{minor}.0"
