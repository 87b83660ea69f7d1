"""`mindspore.nn.layer`: layers, from their families."""

from __future__ import annotations

from msdump.frontends.mindspore.names import explain_missing, publish_all
from msdump.frontends.mindspore.nn.layer.activation import *
from msdump.frontends.mindspore.nn.layer.basic import *
from msdump.frontends.mindspore.nn.layer.combined import *
from msdump.frontends.mindspore.nn.layer.container import *
from msdump.frontends.mindspore.nn.layer.conv import *
from msdump.frontends.mindspore.nn.layer.conv_dims import *
from msdump.frontends.mindspore.nn.layer.embedding import *
from msdump.frontends.mindspore.nn.layer.image import *
from msdump.frontends.mindspore.nn.layer.loaded import *
from msdump.frontends.mindspore.nn.layer.math import *
from msdump.frontends.mindspore.nn.layer.normalization import *
from msdump.frontends.mindspore.nn.layer.padding import *
from msdump.frontends.mindspore.nn.layer.pooling import *
from msdump.frontends.mindspore.nn.layer.pooling_dims import *
from msdump.frontends.mindspore.nn.layer.recurrent import *
from msdump.frontends.mindspore.nn.layer.transformer import *

publish_all(__name__)

__getattr__ = explain_missing(__name__)
