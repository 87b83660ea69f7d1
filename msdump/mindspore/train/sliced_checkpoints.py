"""Checkpoints of networks whose parameters are cut over devices. Here every rank has all of each parameter.

What needs a strategy file, which says how parameters were cut, is an error that says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from msdump.mindspore.common.parameter import Parameter
from msdump.mindspore.common.signatures import in_forms
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.names import publish
from msdump.mindspore.nn.cell import Cell
from msdump.mindspore.train.serialization import load_checkpoint, load_param_into_net


def _no_strategy(name: str) -> NoReturn:
    raise RuntimeError(
        f"{name}: expected parameters that every rank has whole, got a strategy of cutting them. msdump cuts no "
        "parameters; convert the checkpoint with MindSpore and load the result."
    )


def _refusing(name: str) -> Callable[..., NoReturn]:
    def refuse(*args: Any) -> NoReturn:
        """Raises: RuntimeError."""
        _no_strategy(name)

    return refuse


_FILES = "src_strategy_file=None dst_strategy_file=None"
_OUTPUT = "process_num=1 output_format='ckpt'"
_SLICED = f"""
    build_searched_strategy strategy_filename
    merge_pipeline_strategys src_strategy_dirs dst_strategy_file
    rank_list_for_transform rank_id {_FILES}
    restore_group_info_list group_info_file_name
    transform_checkpoint_by_rank rank_id checkpoint_files_map save_checkpoint_file_name {_FILES}
    transform_checkpoints src_checkpoints_dir dst_checkpoints_dir ckpt_prefix {_FILES} {_OUTPUT}
"""


def merge_sliced_parameter(sliced_parameters: Sequence[Parameter], strategy: Any = None) -> Any:
    """Slices of one parameter along axis 0, joined.

    Raises: TypeError, ValueError for anything but slices of one parameter; RuntimeError for a strategy.
    """
    if strategy is not None:
        _no_strategy("merge_sliced_parameter")
    if not isinstance(sliced_parameters, list) or not all(isinstance(item, Parameter) for item in sliced_parameters):
        raise TypeError(f"For 'merge_sliced_parameter', expected a list of Parameter, but got {sliced_parameters!r}.")
    names = sorted({item.name for item in sliced_parameters})
    if len(names) != 1:
        raise ValueError(f"For 'merge_sliced_parameter', expected slices of one parameter, but got {names}.")
    return Parameter(Tensor(np.concatenate([item.asnumpy() for item in sliced_parameters])), name=names[0])


def load_distributed_checkpoint(
    network: Cell, checkpoint_filenames: Sequence[str] | None = None, predict_strategy: Any = None,
    train_strategy_filename: str | None = None, strict_load: bool = False, dec_key: bytes | None = None,
    dec_mode: str = "AES-GCM", format: str = "ckpt", **options: Any,
) -> None:  # fmt: skip
    """Load the file of one rank.   Raises: RuntimeError for several files or a strategy."""
    if predict_strategy is not None or train_strategy_filename or len(checkpoint_filenames or ()) != 1:
        _no_strategy("load_distributed_checkpoint")
    parameters = load_checkpoint((checkpoint_filenames or [""])[0], dec_key=dec_key, dec_mode=dec_mode, format=format)
    load_param_into_net(network, parameters, strict_load)


_NAMES = [line.split()[0] for line in _SLICED.strip().splitlines()]
globals().update(in_forms(_SLICED, {name: _refusing(name) for name in _NAMES}, __name__))

publish(__name__)
