"""Calls of acl.mdl that choose open sizes: a gear of a model that has gears, or sizes for one that has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msdump.frontends.acl import codes
from msdump.frontends.acl.atc import BATCH, DIMS, IMAGE
from msdump.frontends.acl.calls import CallError, as_int, bad_argument, returns_code
from msdump.frontends.acl.dataset import find_dataset
from msdump.frontends.acl.models import LoadedModel, find_model
from msdump.frontends.acl.operand import Shape


@returns_code("aclmdlSetDynamicBatchSize")
def set_dynamic_batch_size(model_id: int, dataset: int, index: int, batch_size: int) -> None:
    """Choose a gear of batches, or the first open size of every input of a model without gears.

    index    of the input ascend_mbatch_shape_data; any for a model without gears, which has no such input
    """
    size = _size(batch_size, "batch_size")
    model, held = find_model(as_int(model_id, "model_id")), find_dataset(dataset)
    if model.control is not None:
        model.choose_gear(BATCH, (size,), held, as_int(index, "index"))
    else:
        _choose(model, lambda shape: (size, *shape[1:]) if shape[:1] == (-1,) else shape)


@returns_code("aclmdlSetDynamicHWSize")
def set_dynamic_hw_size(model_id: int, dataset: int, index: int, height: int, width: int) -> None:
    """Choose a gear of images, or the two open sizes of each input of a model without gears."""
    sizes = (_size(height, "height"), _size(width, "width"))
    model, held = find_model(as_int(model_id, "model_id")), find_dataset(dataset)
    if model.control is not None:
        model.choose_gear(IMAGE, sizes, held, as_int(index, "index"))
        return

    def chosen(shape: tuple[int, ...]) -> tuple[int, ...]:
        axes = [axis for axis, size in enumerate(shape) if size < 0]
        size_by_axis = dict(zip(axes, sizes, strict=True)) if len(axes) == 2 else {}
        return tuple(size_by_axis.get(axis, size) for axis, size in enumerate(shape))

    _choose(model, chosen)


@returns_code("aclmdlSetInputDynamicDims")
def set_input_dynamic_dims(model_id: int, dataset: int, index: int, dims: Mapping[str, Any]) -> None:
    """Choose all sizes of all inputs, one after the other: dims is {"name", "dimCount", "dims"}."""
    chosen = [_size(size, f"dims[{position}]") for position, size in enumerate(_dims(dims))]
    model, held = find_model(as_int(model_id, "model_id")), find_dataset(dataset)
    count = sum(len(operand.shape) for operand in model.inputs)
    if len(chosen) != count:
        raise bad_argument(f"dims: expected the {count} sizes of all inputs, got {len(chosen)}")
    sizes = iter(chosen)
    shapes = [tuple(next(sizes) for _ in operand.shape) for operand in model.inputs]
    _check_fit(model, shapes)
    if model.control is None:
        model.fixed_shapes = dict(enumerate(shapes))
        return
    declared = [size for operand in model.inputs for size in operand.shape]
    gear = tuple(size for size, expected in zip(chosen, declared, strict=True) if expected < 0)
    model.choose_gear(DIMS, gear, held, as_int(index, "index"))


# -- parts ------------------------------------------------------------------------------------------


def _size(value: int, name: str) -> int:
    size = as_int(value, name)
    if size < 0:
        raise bad_argument(f"{name}: expected a size, got {size}")
    return size


def _dims(dims: Mapping[str, Any] | Sequence[int]) -> Sequence[int]:
    """The first `dimCount` of them."""
    if not isinstance(dims, Mapping):
        return dims
    sizes: Sequence[int] = dims["dims"]
    return sizes[: as_int(dims.get("dimCount", len(sizes)), "dimCount")]


def _choose(model: LoadedModel, chosen: Callable[[Shape], Shape]) -> None:
    shapes = [chosen(operand.shape) for operand in model.inputs]
    if shapes == [operand.shape for operand in model.inputs]:
        raise CallError(
            codes.MODEL_NOT_DYNAMIC,
            f"model {model.name}: expected an input with such open sizes, got "
            f"{', '.join(f'{operand.name} {operand}' for operand in model.inputs) or 'no inputs'}",
        )
    _check_fit(model, shapes)
    model.fixed_shapes = dict(enumerate(shapes))


def _check_fit(model: LoadedModel, shapes: Sequence[Shape]) -> None:
    for operand, shape in zip(model.inputs, shapes, strict=True):
        if not operand.fits(shape):
            raise bad_argument(
                f"model {model.name}: expected input {operand.name} as {operand}, got shape {list(shape)}"
            )
