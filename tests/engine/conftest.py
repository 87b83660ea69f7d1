"""An operator that no frontend here makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from msdump.graph.primitive import REGISTRY, Attrs, def_infer, def_kernel, def_primitive
from msdump.graph.types import TensorType
from msdump.tensors.arrays import Array


@pytest.fixture
def collective() -> Iterator[str]:
    def_primitive("HcomAllReduce", ("x",))

    @def_infer("HcomAllReduce")
    def infer(types: Sequence[TensorType], attrs: Attrs) -> tuple[TensorType, ...]:
        return (types[0],)

    @def_kernel("HcomAllReduce")
    def kernel(inputs: Sequence[Array], attrs: Attrs, out: Sequence[Array]) -> None:
        if np.isnan(inputs[0]).any():
            raise FloatingPointError("NaN")
        np.multiply(inputs[0], 2, out=out[0])

    yield "HcomAllReduce"
    del REGISTRY["HcomAllReduce"]
