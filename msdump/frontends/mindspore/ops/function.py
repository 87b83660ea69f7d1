"""Functions of `mindspore.ops`, from their families."""

from __future__ import annotations

from msdump.frontends.mindspore.names import publish_all
from msdump.frontends.mindspore.ops.arithmetic import *
from msdump.frontends.mindspore.ops.array import *
from msdump.frontends.mindspore.ops.network import *
from msdump.frontends.mindspore.ops.program import *
from msdump.frontends.mindspore.ops.reductions import *

publish_all(__name__)
