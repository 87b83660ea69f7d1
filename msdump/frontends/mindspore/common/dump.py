"""`mindspore.common.dump`."""

from __future__ import annotations

from msdump.frontends.mindspore.missing import explain_missing

_USE_KERNELS = (
    "Dump of single cells is not there yet: list the operators' names in `kernels` of the Dump configuration instead."
)

__getattr__ = explain_missing(__name__, {"set_dump": _USE_KERNELS})
