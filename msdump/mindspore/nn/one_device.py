"""What MindSpore's Cell has for several devices, servers of parameters and graphs of its own, as far as one device can
do it: settings are checked and kept, and what would change something is an error."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from msdump.mindspore.common.settings import Setting, flag, is_whole, of_kind
from msdump.mindspore.common.tensor import Tensor
from msdump.mindspore.context import PYNATIVE_MODE, get_context
from msdump.mindspore.parallel_context import get_auto_parallel_context
from msdump.mindspore.sharding import shard


class StateKeys(NamedTuple):
    """What `load_state_dict` returns."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class OneDevice:
    """Base of Cell."""

    bprop_debug = flag(False)
    cell_type: Any = None
    parameter_layout_dict = of_kind(dict, "a dict", dict)
    pipeline_stage = Setting(-1, "an int of 0 or more", is_whole)

    # -- the tree -----------------------------------------------------------------------------------

    def apply(self: Any, fn: Callable[[Any], Any]) -> Any:
        """Call `fn` with every cell below this one, children before parents, and with this one."""
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    def get_inputs(self: Any) -> Any:
        """What `set_inputs` declared, None without it."""
        return self._declared_inputs

    # -- parameters ---------------------------------------------------------------------------------

    def state_dict(self: Any, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Parameters by their place below this cell.   keep_vars: the parameters themselves, else tensors of their
        values as they are now."""
        state = OrderedDict() if destination is None else destination
        for name, parameter in self.parameters_and_names():
            state[prefix + name] = parameter if keep_vars else parameter.copy()
        return state

    def load_state_dict(self: Any, state_dict: Any, strict: bool = True) -> StateKeys:
        """Take over values by place.   Raises: RuntimeError, when strict, for names that have no counterpart."""
        ours = dict(self.parameters_and_names())
        missing = [name for name in ours if name not in state_dict]
        unexpected = [name for name in state_dict if name not in ours]
        if strict and (missing or unexpected):
            raise RuntimeError(
                f"{self.cls_name}.load_state_dict: expected the names of its parameters, got none of "
                f"{missing} and unknown {unexpected}. Give strict=False to load the others."
            )
        for name in ours.keys() & state_dict.keys():
            ours[name].set_data(Tensor(state_dict[name]))
        return StateKeys(missing, unexpected)

    # -- devices ------------------------------------------------------------------------------------

    def set_comm_fusion(self: Any, fusion_type: int, recurse: bool = True) -> Any:
        """Note in which group of collective operators gradients of the parameters would go."""
        for parameter in self.trainable_params(recurse):
            parameter.comm_fusion = fusion_type
        return self

    def set_param_ps(self: Any, recurse: bool = True, init_in_server: bool = False) -> None:
        """Raises: RuntimeError where there are parameters: no server of parameters is there."""
        for parameter in self.trainable_params(recurse):
            parameter.set_param_ps(init_in_server)

    def place(self: Any, role: str, rank_id: int) -> None:
        """Run on this process.   Raises: ValueError for another role or process."""
        if role != "MS_WORKER" or rank_id != 0:
            raise ValueError(f"Cell.place: expected role 'MS_WORKER' and rank_id 0, got {role!r} and {rank_id}.")

    def set_broadcast_flag(self: Any, mode: bool = True) -> Any:
        """Note whether parameters are sent to all devices first."""
        return self.add_flags_recursive(broadcast_flag=mode)

    def shard(
        self: Any, in_strategy: Any, out_strategy: Any = None, parameter_plan: Any = None, device: str = "Ascend",
        level: int = 0,
    ) -> Any:  # fmt: skip
        """This cell, when the strategies cut nothing.

        Raises: AssertionError outside of automatic parallelism in PyNative mode; ValueError for a strategy that cuts.
        """
        mode = get_auto_parallel_context("parallel_mode")
        if get_context("mode") != PYNATIVE_MODE or mode != "auto_parallel":
            raise AssertionError(
                "Cell shard only supports auto parallel under PyNative mode. Please check if you call Cell.shard in "
                "the script."
            )
        return shard(self, in_strategy, out_strategy, parameter_plan)
