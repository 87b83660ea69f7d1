"""Elements of one tensor, as numbers or as a picture: of `msdump show DIR OP --tensor output:0`."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Any

from msdump.cli.exit_status import FINE
from msdump.cli.options import selected_steps, write_json
from msdump.cli.printing import say
from msdump.errors import ConfigError

if TYPE_CHECKING:
    from msdump.analysis.find.look_up import FoundOperator
    from msdump.analysis.steps import Slot
    from msdump.formats.dump_tensor import DumpedTensor
    from msdump.tensors.arrays import Array
    from msdump.viewing.slices import ArraySlice

_Spoiled = dict[str, tuple[int, list[list[int]]]]
_NAME = re.compile(r"(?P<io>input|output)(?:[: ](?P<slot>.+))?")
_FIRST = 5  # elements that are not finite, by their index


def add_element_options(parser: argparse.ArgumentParser) -> None:
    """Options of `print_elements`."""
    add = parser.add_argument
    add("--tensor", metavar="NAME", help="elements of one of its tensors: input:0, output:0, output:1.2 of a list")
    add("--index", metavar="INDEX", help="of --tensor: the part, such as '0, :, 3:5' (the first matrix)")
    add("--picture", metavar="FILE", help="of --tensor: write the part as a PNG, dark to light, NaN red, Inf orange")
    add("--cells", type=int, metavar="N", help="of --picture: at most so many cells in each direction (512)")


def check_element_options(args: argparse.Namespace) -> None:
    """Raises: ConfigError for an option that says nothing without another one."""
    if args.tensor is None and (args.index is not None or args.picture is not None):
        raise ConfigError("--index, --picture: expected --tensor with them. They take a part of one tensor.")
    if args.cells is not None and (args.picture is None or not 1 <= args.cells <= 4096):
        raise ConfigError(f"--cells: expected a number from 1 to 4096 with --picture, got {args.cells}.")


def print_elements(args: argparse.Namespace) -> int:
    """Print a part of a tensor, or write its picture; the exit status.

    Raises: ConfigError for a tensor that the operator has not, and for an index that does not fit.
    """
    from msdump.analysis.find.look_up import find_operator
    from msdump.analysis.steps import opened
    from msdump.formats.selection import StepSelection
    from msdump.viewing.slices import ArraySlice

    found = find_operator(opened(args.dump), args.operator, StepSelection(**selected_steps(args)), is_suspect=True)
    io, slot, tensor = _chosen(found, args.tensor)
    array = tensor.load() if args.raw else tensor.load_host()
    part = ArraySlice.of(array, args.index)
    spoiled = _not_finite(array)
    colors = "" if args.picture is None else _write_picture(args, part)
    if not write_json(args, lambda: _value(found, io, slot, tensor, part, spoiled)):
        _print(found, f"{io} {slot}: {tensor.true_dtype} {list(array.shape)}", part, spoiled, colors)
    return FINE


def _chosen(found: FoundOperator, name: str) -> tuple[str, Slot, DumpedTensor]:
    match = _NAME.fullmatch(name.strip())
    tensors = list(found.operator.all_tensors())
    names = ", ".join(f"{io}:{slot}" for io, slot, _ in tensors)
    if match is not None:
        for io, slot, tensor in tensors:
            if (io, str(slot)) == (match["io"], match["slot"] or "0"):
                return io, slot, tensor
    raise ConfigError(f"--tensor: expected one of {names} of {found.operator.label}, got {name!r}.")


def _not_finite(array: Array) -> _Spoiled:
    """Of NaN, Inf and -Inf that occur: how many, and the index of the first ones."""
    import numpy as np

    if array.dtype.kind not in "fcV":
        return {}
    if array.dtype.kind == "V":  # bfloat16 and its like, which NumPy does not know by itself
        array = array.astype(np.float32)
    spots = {"NaN": np.isnan(array)}
    if array.dtype.kind == "f":
        spots |= {"Inf": np.isposinf(array), "-Inf": np.isneginf(array)}
    else:
        spots["Inf"] = np.isinf(array)
    found = {}
    for kind, mask in spots.items():
        count = int(np.count_nonzero(mask))
        if count:
            first = np.flatnonzero(mask.ravel())[:_FIRST]
            found[kind] = (count, [list(map(int, np.unravel_index(place, mask.shape))) for place in first])
    return found


def _write_picture(args: argparse.Namespace, part: ArraySlice) -> str:
    """Write it.   Returns: what its colours mean."""
    from msdump.viewing.pictures import png

    content, least, largest = png(part, args.cells)
    try:
        with open(args.picture, "wb") as file:
            file.write(content)
    except OSError as error:
        raise ConfigError(f"{args.picture}: expected to write the picture, got: {error.strerror}.") from error
    return f"dark is {least:.6g}, light is {largest:.6g}, red a NaN, orange an Inf"


def _print(found: FoundOperator, what: str, part: ArraySlice, spoiled: _Spoiled, colors: str) -> None:
    say(f"{found.operator.label} ({found.operator.op_type}), {found.key}")
    say(what)
    for kind, (count, first) in spoiled.items():
        say(f"  {count} {kind} at {', '.join(map(str, first))}{', ...' if count > len(first) else ''}")
    text = part.text()
    rows, columns, shown = text["rows"], text["columns"], text["text"]
    if colors:
        say(f"picture of [{part.index}], {rows} x {columns} elements: {colors}")
        return
    say(f"[{part.index}], {rows} x {columns} elements:")
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    for row in shown:
        say("  ".join(["", *(text.rjust(width) for text, width in zip(row, widths, strict=True))]))
    if rows > len(shown) or columns > len(widths):
        say(
            f"{len(shown)} of {rows} rows and {len(widths)} of {columns} columns are shown; --index takes another "
            "part, such as '0:10, 40:50'"
        )


def _value(
    found: FoundOperator, io: str, slot: Slot, tensor: DumpedTensor, part: ArraySlice, spoiled: _Spoiled
) -> dict[str, Any]:
    from msdump.analysis.json_values import location_value, tensor_value

    text = part.text()
    return {
        **location_value(found.key, found.operator),
        "tensor": tensor_value(tensor, None, io=io, slot=slot),
        "index": part.index,
        "rows": text["rows"],
        "columns": text["columns"],
        "elements": text["text"],
        "not_finite": {kind: {"count": count, "first": first} for kind, (count, first) in spoiled.items()},
    }
