"""What the full name of an operator says: its stage, the modules around it, and a shorter name that means it."""

from __future__ import annotations

import re

# Scopes that only wrap the model of the script, and those that autodiff adds.
_WRAPPER = re.compile(r"(?:Gradients|Default|network-.*|_backbone-.*|grad\w+-(?:expand|meta))")
# The number that the graph of an iteration gives an operator; one in the body of a loop or a branch has it again.
_NUMBERED = re.compile(r"[^/]*-op[0-9]+")
_RUN_BY_ANOTHER = re.compile(r"/(?:then|else)_branch/|/body/")


def stage_of(label: str) -> str:
    """Of a full name: "forward", "backward" or "optimizer"."""
    if label.startswith("Gradients"):
        return "backward"
    return "optimizer" if "optimizer-" in label else "forward"


def layer_of(full_name: str) -> str | None:
    """Names of the modules around an operator, without their classes; None where its name has no scope.

    `Default/network-WithLossCell/_backbone-Net/fc2-Dense/MatMul-op3` -> "fc2"; the model itself is "".
    """
    if "/" not in full_name:
        return None
    scopes = full_name.split("/")[:-1]
    return ".".join(scope.rpartition("-")[0] or scope for scope in scopes if not _WRAPPER.fullmatch(scope))


def short_label(label: str) -> str:
    """The shortest name that means an operator in its graph: the last part where that ends in a number of the graph."""
    short = label.rpartition("/")[2]
    return short if _NUMBERED.fullmatch(short) and not _RUN_BY_ANOTHER.search(label) else label
