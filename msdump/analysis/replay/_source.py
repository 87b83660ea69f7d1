"""Source of functions of this package, for scripts."""

from __future__ import annotations

import re

# What type checkers read, which a script does without.
_TYPE = r"Any|Array|Attrs|Sequence\[\w+\]|(?:list|dict|tuple)\[[\w, ]+\]"
_ANNOTATION = re.compile(rf": (?:{_TYPE}|int|float)(?=[,)=]| =)| -> (?:{_TYPE})(?=:)")
_NOTE = re.compile(r"  # (?:noqa|type: ignore)\S*(?: B905)?$", re.MULTILINE)
# numpy has no bfloat16; every value of the narrow dtypes is one of float64 as well.
COMPUTE_TENSORS = """

def compute(arrays):
    tensors = run([torch.from_numpy(array) for array in arrays], ATTRS)
    wide = [tensor.double() if tensor.is_floating_point() else tensor.resolve_conj() for tensor in tensors]
    return [tensor.numpy() for tensor in wide]
"""


def plain_source(source: str) -> str:
    """Source without what only type checkers read."""
    return _NOTE.sub("", _ANNOTATION.sub("", source))
