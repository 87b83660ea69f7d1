"""Functions of `mindspore.ops`, from their families."""

from __future__ import annotations

import sys as _sys

from msdump.frontends.mindspore.assigning import put as _put
from msdump.frontends.mindspore.common.initializer import initializer as _initializer
from msdump.frontends.mindspore.common.tensor import attach as _attach
from msdump.frontends.mindspore.indexing import take as _take
from msdump.frontends.mindspore.located import located as _located
from msdump.frontends.mindspore.names import publish_all
from msdump.frontends.mindspore.ops import updates as _updates  # noqa: F401  (operator classes)
from msdump.frontends.mindspore.ops.activations import *
from msdump.frontends.mindspore.ops.arithmetic import *
from msdump.frontends.mindspore.ops.arrangement import *
from msdump.frontends.mindspore.ops.array import *
from msdump.frontends.mindspore.ops.blending import *
from msdump.frontends.mindspore.ops.convolutions import *
from msdump.frontends.mindspore.ops.creation import *
from msdump.frontends.mindspore.ops.draws import *
from msdump.frontends.mindspore.ops.elementary import *
from msdump.frontends.mindspore.ops.image import *
from msdump.frontends.mindspore.ops.keywords import OF_CLASSES as _OF_CLASSES
from msdump.frontends.mindspore.ops.keywords import OF_OPS as _OF_OPS
from msdump.frontends.mindspore.ops.keywords import accept_other_names as _accept_other_names
from msdump.frontends.mindspore.ops.linear_algebra import *
from msdump.frontends.mindspore.ops.losses import *
from msdump.frontends.mindspore.ops.mapping import *
from msdump.frontends.mindspore.ops.methods import add_methods as _add_methods
from msdump.frontends.mindspore.ops.network import *
from msdump.frontends.mindspore.ops.padding import *
from msdump.frontends.mindspore.ops.primitive import functional_classes as _functional_classes
from msdump.frontends.mindspore.ops.products import *
from msdump.frontends.mindspore.ops.program import *
from msdump.frontends.mindspore.ops.reductions import *
from msdump.frontends.mindspore.ops.resizing import *
from msdump.frontends.mindspore.ops.scatter import *
from msdump.frontends.mindspore.ops.selection import *
from msdump.frontends.mindspore.ops.signals import *
from msdump.frontends.mindspore.ops.spectral import *
from msdump.frontends.mindspore.ops.spellings import *
from msdump.frontends.mindspore.ops.statistics import *
from msdump.frontends.mindspore.ops.tensor_dump import tensordump as tensordump
from msdump.frontends.mindspore.ops.triangles import *
from msdump.frontends.mindspore.ops.volumes import *
from msdump.frontends.mindspore.ops.windows import *

publish_all(__name__)
_accept_other_names(globals(), _OF_OPS)
_accept_other_names(_functional_classes, _OF_CLASSES)
_located_index = _located("index", keeps=(IndexError,))
_attach(_sys.modules[__name__], _located_index(_take), _located_index(_put), _initializer)
_add_methods(globals())
