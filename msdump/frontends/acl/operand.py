"""ModelOperand: an input or output of a model as its description tells of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from msdump.frontends.acl.tensor_desc import UNKNOWN
from msdump.tensors import dtypes
from msdump.tensors.packing import packed_size

if TYPE_CHECKING:
    from msdump.frontends.onnx import DeclaredTensor

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ModelOperand:
    """An input or output. Open sizes are -1; `dtype` is a name of the dtype table.

    ranges   (least, most) of each size, most -1 for no end; () where the options of ATC name none
    largest  its shape when it is largest, where the model was compiled for some shapes; None: it has no largest
    """

    name: str
    dtype: str
    shape: Shape
    ranges: tuple[tuple[int, int], ...] = ()
    largest: Shape | None = None

    @property
    def is_dynamic(self) -> bool:
        return any(size < 0 for size in self.shape)

    @property
    def size(self) -> int:
        """Bytes of the largest tensor that it may be; 0 when it has none.

        Source: ACL, `aclmdlGetInputSizeByIndex`, on dynamic batches and sizes of -1.
        """
        shape = self.largest or tuple(most for _, most in self.ranges) or self.shape
        if any(size < 0 for size in shape) or not has_array(self.dtype):
            return 0
        return packed_size(self.dtype, math.prod(shape))

    def fits(self, shape: Shape) -> bool:
        """True when a tensor of this shape may be given for it."""
        ranges = self.ranges or tuple((0, UNKNOWN) if size == UNKNOWN else (size, size) for size in self.shape)
        return len(shape) == len(ranges) and all(
            size == least if least == most else size == UNKNOWN or (least <= size and (most < 0 or size <= most))
            for size, (least, most) in zip(shape, ranges, strict=True)
        )

    def __str__(self) -> str:
        sizes = ["?" if size < 0 else str(size) for size in self.shape]
        for index, (least, most) in enumerate(self.ranges):
            if self.shape[index] < 0 <= most:
                sizes[index] = f"{least}~{most}"
        return f"{self.dtype}[{', '.join(sizes)}]"


def has_array(dtype: str) -> bool:
    """True for a dtype of tensors that memory can hold: not for strings, sequences and maps."""
    row = dtypes.BY_NAME.get(dtype)
    return row is not None and row.numpy_type is not None


def operand_of(spec: DeclaredTensor) -> ModelOperand:
    """What a model declares; an open rank is one open size."""
    sizes = (UNKNOWN,) if spec.shape is None else spec.shape
    return ModelOperand(spec.name, spec.dtype, tuple(size if isinstance(size, int) else UNKNOWN for size in sizes))
