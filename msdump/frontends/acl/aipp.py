"""AIPP: preprocessing of images by the device.

ATC puts it into an `.om` file; no `.onnx` file has it. So settings are taken and checked, and to use them on a model
gives the number that ACL gives for a model without AIPP.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from msdump.frontends.acl import codes
from msdump.frontends.acl.calls import (
    CallError,
    as_int,
    bad_argument,
    report,
    returns_code,
    returns_plain,
    returns_value,
)
from msdump.frontends.acl.dataset import find_dataset
from msdump.frontends.acl.models import find_model
from msdump.frontends.acl.process import process

_MOST_BATCHES = 127
_INPUT_FORMATS = range(1, 15)
_WITHOUT_AIPP = 0
_NO_INDEX = 0xFFFFFFFF


@dataclass(slots=True)
class Aipp:
    """Settings by the names of their calls; those of one image by (name, image)."""

    batch_size: int
    settings: dict[str | tuple[str, int], tuple[float, ...]] = field(default_factory=dict)


@returns_plain("aclmdlCreateAIPP", 0)
def create_aipp(batch_size: int) -> int:
    """`aipp = acl.mdl.create_aipp(batch_size)`; 0 when it cannot be."""
    count = as_int(batch_size, "batch_size")
    if not 1 <= count <= _MOST_BATCHES:
        raise bad_argument(f"batch_size: expected 1 to {_MOST_BATCHES}, got {count}")
    return process.handles.add(Aipp(count))


@returns_code("aclmdlDestroyAIPP")
def destroy_aipp(aipp: int) -> None:
    process.handles.remove(as_int(aipp, "aipp"), Aipp, "aipp")


@returns_code("aclmdlSetAIPPInputFormat")
def set_aipp_input_format(aipp: int, input_format: int) -> None:
    number = as_int(input_format, "input_format")
    if number not in _INPUT_FORMATS:
        raise bad_argument(f"input_format: expected a number of aclAippInputFormat, 1 to 14, got {number}")
    _find(aipp).settings["input_format"] = (number,)


@returns_code("aclmdlSetAIPPCscParams")
def set_aipp_csc_params(
    aipp: int,
    csc_switch: int,
    r0c0: int,
    r0c1: int,
    r0c2: int,
    r1c0: int,
    r1c1: int,
    r1c2: int,
    r2c0: int,
    r2c1: int,
    r2c2: int,
    output_bias_r0: int,
    output_bias_r1: int,
    output_bias_r2: int,
    input_bias_r0: int,
    input_bias_r1: int,
    input_bias_r2: int,
) -> None:
    """Colour space conversion: a matrix of 3 by 3, biases of the results and of the operands."""
    matrix = (r0c0, r0c1, r0c2, r1c0, r1c1, r1c2, r2c0, r2c1, r2c2)
    biases = (output_bias_r0, output_bias_r1, output_bias_r2, input_bias_r0, input_bias_r1, input_bias_r2)
    _find(aipp).settings["csc"] = (_switch(csc_switch), *_ints(matrix, -(2**15), 2**15 - 1), *_ints(biases, 0, 255))


@returns_code("aclmdlSetAIPPRbuvSwapSwitch")
def set_aipp_rbuv_swap_switch(aipp: int, rbuv_swap_switch: int) -> None:
    _find(aipp).settings["rbuv_swap"] = (_switch(rbuv_swap_switch),)


@returns_code("aclmdlSetAIPPAxSwapSwitch")
def set_aipp_ax_swap_switch(aipp: int, ax_swap_switch: int) -> None:
    _find(aipp).settings["ax_swap"] = (_switch(ax_swap_switch),)


@returns_code("aclmdlSetAIPPSrcImageSize")
def set_aipp_src_image_size(aipp: int, width: int, height: int) -> None:
    _find(aipp).settings["src_image_size"] = _ints((width, height), 1, 4096)


@returns_code("aclmdlSetAIPPScfParams")
def set_aipp_scf_params(
    aipp: int, scf_switch: int, input_w: int, input_h: int, output_w: int, output_h: int, batch_index: int
) -> None:
    _set(aipp, "scf", batch_index, (_switch(scf_switch), *_ints((input_w, input_h, output_w, output_h), 0, 4096)))


@returns_code("aclmdlSetAIPPCropParams")
def set_aipp_crop_params(
    aipp: int, crop_switch: int, start_w: int, start_h: int, size_w: int, size_h: int, batch_index: int
) -> None:
    _set(aipp, "crop", batch_index, (_switch(crop_switch), *_ints((start_w, start_h, size_w, size_h), 0, 4096)))


@returns_code("aclmdlSetAIPPPaddingParams")
def set_aipp_padding_params(
    aipp: int, padding_switch: int, top: int, bottom: int, left: int, right: int, batch_index: int
) -> None:
    _set(aipp, "padding", batch_index, (_switch(padding_switch), *_ints((top, bottom, left, right), 0, 32)))


@returns_code("aclmdlSetAIPPDtcPixelMean")
def set_aipp_dtc_pixel_mean(aipp: int, chn0: int, chn1: int, chn2: int, chn3: int, batch_index: int) -> None:
    _set(aipp, "pixel_mean", batch_index, _ints((chn0, chn1, chn2, chn3), -(2**15), 2**15 - 1))


@returns_code("aclmdlSetAIPPDtcPixelMin")
def set_aipp_dtc_pixel_min(aipp: int, chn0: float, chn1: float, chn2: float, chn3: float, batch_index: int) -> None:
    _set(aipp, "pixel_min", batch_index, tuple(map(float, (chn0, chn1, chn2, chn3))))


@returns_code("aclmdlSetAIPPPixelVarReci")
def set_aipp_pixel_var_reci(aipp: int, chn0: float, chn1: float, chn2: float, chn3: float, batch_index: int) -> None:
    _set(aipp, "pixel_var_reci", batch_index, tuple(map(float, (chn0, chn1, chn2, chn3))))


@returns_code("aclmdlSetInputAIPP")
def set_input_aipp(model_id: int, dataset: int, index: int, aipp: int) -> None:
    """Returns: 145015: no model here has AIPP."""
    find_dataset(dataset), _find(aipp)
    _refuse(model_id, index)


@returns_code("aclmdlSetAIPPByInputIndex")
def set_aipp_by_input_index(model_id: int, dataset: int, index: int, aipp: int) -> None:
    """Returns: 145015: no model here has AIPP."""
    find_dataset(dataset), _find(aipp)
    _refuse(model_id, index)


@returns_value("aclmdlGetFirstAippInfo", None)
def get_first_aipp_info(model_id: int, index: int) -> None:
    """`info, ret = acl.mdl.get_first_aipp_info(model_id, index)`: None, 145015: no model here has AIPP."""
    _refuse(model_id, index)


def get_aipp_type(model_id: int, index: int) -> tuple[int, int, int]:
    """`type, index, ret = acl.mdl.get_aipp_type(model_id, index)`: 0, an input without AIPP."""
    try:
        find_model(as_int(model_id, "model_id"))
    except CallError as error:
        return _WITHOUT_AIPP, _NO_INDEX, report("aclmdlGetAippType", error)
    as_int(index, "index")
    return _WITHOUT_AIPP, _NO_INDEX, codes.SUCCESS


def _refuse(model_id: int, index: int) -> None:
    model = find_model(as_int(model_id, "model_id"))
    raise CallError(
        codes.GE_AIPP_NOT_EXIST,
        f"model {model.name}: expected an input with AIPP, got input {as_int(index, 'index')} of an .onnx file, which "
        "has none. Do to the image before what AIPP would",
    )


def _find(aipp: int) -> Aipp:
    return process.handles.find(as_int(aipp, "aipp"), Aipp, "aipp")


def _set(aipp: int, name: str, batch_index: int, values: tuple[float, ...]) -> None:
    held, image = _find(aipp), as_int(batch_index, "batch_index")
    if not 0 <= image < held.batch_size:
        raise bad_argument(f"batch_index: expected 0 to {held.batch_size - 1}, got {image}")
    held.settings[name, image] = values


def _switch(value: int) -> int:
    number = as_int(value, "switch")
    if number not in (0, 1):
        raise bad_argument(f"switch: expected 0 or 1, got {number}")
    return number


def _ints(values: tuple[int, ...], least: int, most: int) -> tuple[int, ...]:
    numbers = tuple(as_int(value, "value") for value in values)
    for number in numbers:
        if not least <= number <= most:
            raise bad_argument(f"value: expected {least} to {most}, got {number}")
    return numbers
