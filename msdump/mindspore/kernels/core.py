"""The operators that need no other library: numpy computes these types on any machine, forward and backward.

They are what AlexNet, LeNet, a residual network and a transformer encoder need, with SGD, Momentum, Adam and
AdamWeightDecay. Their values are the same bits wherever their kernels run; so are those of the other types that have a
kernel of numpy, but these alone are promised to keep one.
"""

from __future__ import annotations

_IMAGES = """
    AdaptiveAvgPool2D AdaptiveAvgPool2DGrad BatchNorm BatchNormGrad BiasAdd BiasAddGrad Conv2D Conv2DBackpropFilter
    Conv2DBackpropInput Dropout DropoutGrad MaxPool MaxPoolGrad ReLU ReluGrad SparseSoftmaxCrossEntropyWithLogits
"""
_SEQUENCES = """
    BatchMatMul Cast Concat Erf Gather GatherD GatherDGradV2 LayerNorm LayerNormGrad MaskedFill Softmax Split Tile
    Transpose UnsortedSegmentSum
"""
_ARITHMETIC = """
    Add AddN Div Equal Exp Log MatMul Mul Neg RealDiv ReduceMax ReduceMean ReduceSum Square Sub
"""
_UPDATES = "Adam AdamWeightDecay ApplyMomentum Assign AssignAdd SGD"

CORE = frozenset(f"{_IMAGES} {_SEQUENCES} {_ARITHMETIC} {_UPDATES}".split())
