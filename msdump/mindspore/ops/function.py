"""Functions of `mindspore.ops`, from their families."""

from __future__ import annotations

import sys as _sys

from msdump.mindspore.assigning import put as _put
from msdump.mindspore.common.initializer import initializer as _initializer
from msdump.mindspore.common.tensor import attach as _attach
from msdump.mindspore.indexing import take as _take
from msdump.mindspore.located import located as _located
from msdump.mindspore.names import publish_all
from msdump.mindspore.ops import updates as _updates  # noqa: F401  (operator classes)
from msdump.mindspore.ops.activations import *
from msdump.mindspore.ops.arithmetic import *
from msdump.mindspore.ops.arrangement import *
from msdump.mindspore.ops.array import *
from msdump.mindspore.ops.blending import *
from msdump.mindspore.ops.convolutions import *
from msdump.mindspore.ops.creation import *
from msdump.mindspore.ops.draws import *
from msdump.mindspore.ops.elementary import *
from msdump.mindspore.ops.image import *
from msdump.mindspore.ops.linear_algebra import *
from msdump.mindspore.ops.losses import *
from msdump.mindspore.ops.mapping import *
from msdump.mindspore.ops.methods import OF_CLASSES as _OF_CLASSES
from msdump.mindspore.ops.methods import OF_OPS as _OF_OPS
from msdump.mindspore.ops.methods import accept_other_names as _accept_other_names
from msdump.mindspore.ops.methods import add_methods as _add_methods
from msdump.mindspore.ops.network import *
from msdump.mindspore.ops.padding import *
from msdump.mindspore.ops.primitive import functional_classes as _functional_classes
from msdump.mindspore.ops.products import *
from msdump.mindspore.ops.program import *
from msdump.mindspore.ops.reductions import *
from msdump.mindspore.ops.resizing import *
from msdump.mindspore.ops.scatter import *
from msdump.mindspore.ops.selection import *
from msdump.mindspore.ops.signals import *
from msdump.mindspore.ops.spectral import *
from msdump.mindspore.ops.spellings import *
from msdump.mindspore.ops.statistics import *
from msdump.mindspore.ops.tensor_dump import tensordump as tensordump
from msdump.mindspore.ops.triangles import *
from msdump.mindspore.ops.windows import *

publish_all(__name__)
_accept_other_names(globals(), _OF_OPS)
_accept_other_names(_functional_classes, _OF_CLASSES)
_located_index = _located("index", keeps=(IndexError,))
_attach(_sys.modules[__name__], _located_index(_take), _located_index(_put), _initializer)
_add_methods(globals())
