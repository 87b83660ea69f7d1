"""What each operator computes. Importing this package registers every primitive in graph.primitive.REGISTRY."""

from __future__ import annotations

from msdump.kernels import (  # noqa: F401
    activation,
    array,
    bias,
    cast,
    communication,
    conv,
    debug,
    elementwise,
    indexing,
    loss,
    matmul,
    normalization,
    optimizer,
    pooling,
    random,
    reduction,
    softmax,
    state,
)
