"""`mindspore.numpy`: numpy's names on tensors, each a function of `mindspore.ops` or a few of them."""

from __future__ import annotations

from msdump.mindspore.common.dtype import bool_, float16, float32, float64, int8, int16, int32, int64, uint8
from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.numpy.creation import *
from msdump.mindspore.numpy.elements import *
from msdump.mindspore.numpy.reductions import *
from msdump.mindspore.numpy.shapes import *
from msdump.mindspore.ops.methods import OF_NUMPY as _OF_NUMPY
from msdump.mindspore.ops.methods import accept_other_names as _accept_other_names

pi = 3.141592653589793
e = 2.718281828459045
inf = float("inf")
nan = float("nan")
newaxis = None

publish_all(__name__)
_accept_other_names(globals(), _OF_NUMPY)

__getattr__ = explain_missing(__name__)
