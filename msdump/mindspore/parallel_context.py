"""Settings of parallel training, of parameter servers and of memory offload, checked with MindSpore's error texts.

Of all of these, `parallel_mode`, `device_num`, `global_rank`, `gradients_mean` and `parameter_broadcast` act here; the
rest is checked and kept.   Source: names and defaults of MindSpore 2.0 and 2.7.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, final

from msdump.errors import did_you_mean
from msdump.mindspore.names import publish


class ParallelMode:
    """Names of the parallel modes."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = (STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL)


@final
class _Settings:
    """Values by name, with the types of their defaults.

    title   what MindSpore calls the group in the text about an unknown name
    """

    def __init__(self, title: str, defaults: Mapping[str, Any]) -> None:
        self._title, self._defaults = title, dict(defaults)
        self._values = deepcopy(self._defaults)

    def get(self, name: str) -> Any:
        """Raises: ValueError for an unknown name."""
        self._check_name("Get", name)
        return self._values[name]

    def all(self) -> dict[str, Any]:
        return dict(self._values)

    def set(self, values: Mapping[str, Any]) -> None:
        """All values or none.   Raises: ValueError for an unknown name, TypeError for a value of another type."""
        for name, value in values.items():
            self._check_name("Set", name)
            kind = type(self._defaults[name])
            is_number = kind is float and isinstance(value, int)
            is_kind = is_number or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool)))
            if self._defaults[name] is not None and not is_kind:
                raise TypeError(f"The parameter '{name}' must be {kind}, but got {type(value)}")
        self._values.update(values)

    def _check_name(self, verb: str, name: str) -> None:
        if name not in self._defaults:
            hint = did_you_mean(name, self._defaults)
            raise ValueError(f"{verb} {self._title} keyword {name} is not recognized! {hint}".rstrip())

    def reset(self) -> None:
        self._values = deepcopy(self._defaults)


_FUSION = {"mode": "auto", "config": None}
_parallel = _Settings("context", {
    "parallel_mode": ParallelMode.STAND_ALONE,
    "device_num": 1,
    "global_rank": 0,
    "gradients_mean": False,
    "gradient_fp32_sync": True,
    "loss_repeated_mean": True,
    "parameter_broadcast": False,
    "full_batch": False,
    "full_batch_is_set": False,
    # A text, or a tuple of the slices of each column.
    "dataset_strategy": None,
    "search_mode": "recursive_programming",
    "auto_parallel_search_mode": "recursive_programming",
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
    "strategy_ckpt_config": {"load_file": "", "save_file": "", "only_trainable_params": True},
    "pipeline_stages": 1,
    "pipeline_config": {},
    "pipeline_result_broadcast": False,
    "pipeline_interleave": False,
    "pipeline_scheduler": "1f1b",
    "auto_pipeline": False,
    "grad_accumulation_step": 1,
    "grad_accumulation_shard": False,
    "parallel_optimizer_config": {},
    "enable_parallel_optimizer": False,
    "enable_alltoall": False,
    "all_reduce_fusion_config": [],
    "comm_fusion": {
        "openstate": True, "allreduce": dict(_FUSION), "allgather": dict(_FUSION), "reducescatter": dict(_FUSION),
    },
    "communi_parallel_mode": "all_group_parallel",
    "optimizer_weight_shard_size": -1,
    "optimizer_weight_shard_aggregated_save": False,
    "sharding_propagation": False,
    "force_fp32_communication": False,
    "group_ckpt_save_file": "",
    "init_param_in_compile": True,
    "dump_local_norm": False,
    "dump_local_norm_path": "",
    "dump_device_local_norm": False,
})  # fmt: skip
_parallel.set({"dataset_strategy": "data_parallel"})
_servers = _Settings("PS context", {"enable_ps": False, "config_file_path": "", "enable_ssl": False})
_algorithm = _Settings("context", {
    "fully_use_devices": False, "elementwise_op_strategy_follow": False, "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1, "tensor_slice_align_enable": False, "tensor_slice_align_size": 16,
})  # fmt: skip
_offload = _Settings("offload context", {
    "offload_param": "", "offload_path": "./offload/", "offload_checkpoint": "", "offload_ddr_size": "0",
    "offload_cpu_size": "0", "offload_disk_size": "0", "enable_aio": True, "aio_block_size": "1048576",
    "aio_queue_depth": 1024, "enable_pinned_mem": True, "auto_offload": False, "host_mem_block_size": "1073741824",
    "cpu_ratio": 1.0, "hbm_ratio": 1.0,
})  # fmt: skip


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Change settings of parallel training; all of them or, when one is refused, none.

    Raises: ValueError for an unknown name, mode or a number that is too small; TypeError for a value of another type.
    """
    mode = kwargs.get("parallel_mode", ParallelMode.STAND_ALONE)
    if mode not in ParallelMode.MODE_LIST:
        raise ValueError(
            "The context configuration parameter 'parallel_mode' only support "
            f"{', '.join(map(repr, ParallelMode.MODE_LIST))}, but got the value : {mode}."
        )
    for name, least in (("device_num", 1), ("global_rank", 0), ("pipeline_stages", 1), ("grad_accumulation_step", 1)):
        number = kwargs.get(name, least)
        if isinstance(number, int) and number < least:
            raise ValueError(f"The context configuration parameter '{name}' must be >= {least}, but got {number}.")
    _parallel.set(kwargs)


def get_auto_parallel_context(attr_key: str) -> Any:
    """One setting of parallel training.   Raises: ValueError for an unknown name."""
    return _parallel.get(attr_key)


def reset_auto_parallel_context() -> None:
    """All settings of parallel training back to their defaults."""
    _parallel.reset()
    _parallel.set({"dataset_strategy": "data_parallel"})


def set_ps_context(**kwargs: Any) -> None:
    """Settings of parameter servers.   Raises: ValueError for an unknown name, and when they are switched on."""
    if kwargs.get("enable_ps") is True:
        raise ValueError("enable_ps: expected False, got True. There is no parameter server here; use data_parallel.")
    _servers.set(kwargs)


def get_ps_context(attr_key: str) -> Any:
    """One setting of parameter servers.   Raises: ValueError for an unknown name."""
    return _servers.get(attr_key)


def reset_ps_context() -> None:
    """All settings of parameter servers back to their defaults."""
    _servers.reset()


def set_algo_parameters(**kwargs: Any) -> None:
    """Settings of the search for parallel strategies.   Raises: as `set_ps_context`."""
    _algorithm.set(kwargs)


def get_algo_parameters(attr_key: str) -> Any:
    """One setting of the search for parallel strategies.   Raises: ValueError for an unknown name."""
    return _algorithm.get(attr_key)


def reset_algo_parameters() -> None:
    """All settings of the search back to their defaults."""
    _algorithm.reset()


def set_offload_context(offload_config: Mapping[str, Any]) -> None:
    """Settings of memory offload, which does not take place here.   Raises: as `set_ps_context`."""
    if not isinstance(offload_config, Mapping):
        raise TypeError(f"offload_config: expected a dict, got {type(offload_config).__name__}.")
    _offload.set(offload_config)


def get_offload_context() -> dict[str, Any]:
    """All settings of memory offload."""
    return _offload.all()


publish(__name__)
