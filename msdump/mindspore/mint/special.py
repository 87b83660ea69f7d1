"""`mindspore.mint.special`."""

from __future__ import annotations

from msdump.mindspore.mint import elements, reductions
from msdump.mindspore.mint.nn import functional
from msdump.mindspore.names import explain_missing

_NAMES = {elements: "erfc exp2 expm1 log1p round sinc", functional: "log_softmax", reductions: "softmax"}

globals().update((name, vars(source)[name]) for source, names in _NAMES.items() for name in names.split())
__all__ = sorted(name for names in _NAMES.values() for name in names.split())

__getattr__ = explain_missing(__name__)
