"""`mindspore.nn.layer`: layers, from their families."""

from __future__ import annotations

from msdump.mindspore.names import explain_missing, publish_all
from msdump.mindspore.nn.layer.activation import *
from msdump.mindspore.nn.layer.basic import *
from msdump.mindspore.nn.layer.combined import *
from msdump.mindspore.nn.layer.container import *
from msdump.mindspore.nn.layer.conv import *
from msdump.mindspore.nn.layer.image import *
from msdump.mindspore.nn.layer.normalization import *
from msdump.mindspore.nn.layer.padding import *
from msdump.mindspore.nn.layer.pooling import *
from msdump.mindspore.nn.layer.recurrent import *
from msdump.mindspore.nn.layer.transformer import *

publish_all(__name__)

__getattr__ = explain_missing(__name__)
