"""`mindspore.set_dump`: marks cells and operators whose tensors `dump_mode` 2 dumps."""

from __future__ import annotations

import warnings

from msdump.config.environment import Environment
from msdump.mindspore.context import PYNATIVE_MODE, get_context
from msdump.mindspore.names import explain_missing, publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.ops.primitive import Primitive
from msdump.mindspore.tracer import MARK


def set_dump(target: Cell | Primitive, enabled: bool = True) -> None:
    """Mark a cell with all cells below it, or an operator; `enabled` false takes the mark away.

    Operators pass the mark on to their backward. An operator object without a mark of its own goes with its cell.
    Edges:   a cell that was compiled before is compiled anew at its next call; an operator object must be marked
             before the first call.
    Raises:  ValueError for anything else than a cell or operator, or a bool.
    Source:  MindSpore, `mindspore.set_dump`; its warnings about devices and modes hold with MSDUMP_STRICT only.
    """
    if not isinstance(target, Cell | Primitive):
        raise ValueError(
            f'The "target" parameter must be an instance of Cell or Primitive, but got an instance of {type(target)}.'
        )
    if not isinstance(enabled, bool):
        raise ValueError('The "enabled" parameter must be bool.')
    for text in _warnings():
        warnings.warn(text, UserWarning, stacklevel=2)
    if isinstance(target, Primitive):
        target.add_prim_attr(MARK, "true" if enabled else "false")
        return
    target.add_flags(**{MARK: enabled})
    for child in target.cells():
        set_dump(child, enabled)
    for thing in list(vars(target).values()):
        if isinstance(thing, Primitive) and MARK in thing.attrs:
            set_dump(thing, enabled)


def _warnings() -> list[str]:
    """What MindSpore says where it cannot dump; here it can, unless told to be as strict."""
    if not Environment.from_os().is_strict:
        return []
    texts = []
    device_target = get_context("device_target")
    if device_target != "Ascend":
        texts.append(
            f"Current device_target is {device_target}, which is not supported by set_dump. Only Ascend device target "
            "is supported currently. If you have Ascend device, consider set device_target to Ascend before calling "
            "set_dump."
        )
    if get_context("mode") == PYNATIVE_MODE:
        texts.append(
            "Current mode is PYNATIVE_MODE, which is not supported by set_dump. Only GRAPH_MODE is supported "
            "currently. Consider set mode to GRAPH_MODE before calling set_dump."
        )
    return texts


publish(__name__, tells_line=False)

__getattr__ = explain_missing(__name__)
