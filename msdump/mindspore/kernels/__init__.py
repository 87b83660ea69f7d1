"""What each operator computes. Importing this package registers every primitive in graph.primitive.REGISTRY."""

from __future__ import annotations

from msdump.mindspore.kernels import (
    activation,
    adaptive_pooling,
    array,
    bias,
    binary_loss,
    communication,
    conv,
    draws,
    elementwise,
    group_normalization,
    indexing,
    loss,
    lstm,
    masking,
    matmul,
    normalization,
    optimizer,
    pooling,
    program,
    random,
    reduction,
    softmax,
    torch_kernels,
)
