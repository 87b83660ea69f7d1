"""Context: the process-wide settings of a script (`set_context`), checked with MindSpore's error texts."""

from __future__ import annotations

import os
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from msdump.config.environment import kernels
from msdump.errors import did_you_mean
from msdump.graph.primitive import choose_providers
from msdump.graph.saturation import saturate
from msdump.mindspore.located import located
from msdump.mindspore.parallel_context import (
    ParallelMode,
    get_algo_parameters,
    get_auto_parallel_context,
    get_offload_context,
    get_ps_context,
    reset_algo_parameters,
    reset_auto_parallel_context,
    reset_ps_context,
    set_algo_parameters,
    set_auto_parallel_context,
    set_offload_context,
    set_ps_context,
)

__all__ = [
    "COMPATIBLE", "GRAPH_MODE", "LAX", "PYNATIVE_MODE", "STRICT", "ParallelMode", "get_algo_parameters",
    "get_auto_parallel_context", "get_context", "get_current_device", "get_offload_context", "get_ps_context",
    "reset_algo_parameters", "reset_auto_parallel_context", "reset_ps_context", "set_algo_parameters",
    "set_auto_parallel_context", "set_context", "set_deterministic", "set_device", "set_offload_context",
    "set_ps_context",
]  # fmt: skip

GRAPH_MODE, PYNATIVE_MODE = 0, 1
# What compilation takes: STRICT only what a graph can hold, LAX all of Python.
STRICT, COMPATIBLE, LAX = 0, 1, 2
_TARGETS = ["CPU", "GPU", "Ascend", "Davinci"]
_LEVELS = ["O0", "O1", "O2"]
_SWITCHES = ["ON", "OFF"]
_GUIDE = "For detailed usage of '{}', please refer to the Mindspore official website."


def _reject(text: str) -> PydanticCustomError:
    # The text goes through as it is: braces in it must not be taken for fields.
    return PydanticCustomError("context", "{text}", {"text": f"For 'context.set_context', {text}"})


class ContextSettings(BaseModel):
    """Every key that `set_context` takes, with its default. Keys without effect here are checked and kept."""

    model_config = ConfigDict(extra="forbid", validate_assignment=True)

    mode: StrictInt = PYNATIVE_MODE
    device_target: StrictStr = "CPU"
    device_id: StrictInt = 0
    save_graphs: StrictBool | StrictInt = 0
    save_graphs_path: StrictStr = "."
    reserve_class_name_in_scope: StrictBool = True
    deterministic: StrictStr = "OFF"
    jit_config: dict[str, Any] | None = None
    jit_level: StrictStr = ""
    jit_syntax_level: StrictInt = LAX
    max_call_depth: StrictInt = 1000
    pynative_synchronize: StrictBool = False
    enable_graph_kernel: StrictBool = False
    graph_kernel_flags: StrictStr = ""
    memory_optimize_level: StrictStr = "O0"
    mempool_block_size: StrictStr = "1GB"
    max_device_memory: StrictStr = "1024GB"
    variable_memory_max_size: StrictStr = "30GB"
    enable_compile_cache: StrictBool = False
    compile_cache_path: StrictStr = "."
    op_timeout: StrictInt = 1900
    print_file_path: StrictStr = ""
    env_config_path: StrictStr = ""
    precompile_only: StrictBool = False
    enable_reduce_precision: StrictBool = True
    grad_for_scalar: StrictBool = False
    check_bprop: StrictBool = False
    support_binary: StrictBool = False
    runtime_num_threads: StrictInt = 30
    inter_op_parallel_num: StrictInt = 0
    ascend_config: dict[str, Any] | None = None
    disable_format_transform: StrictBool = False
    memory_offload: Literal["ON", "OFF"] = "OFF"
    # msdump's own: which library computes.
    kernel_backend: Literal["auto", "numpy", "torch"] = Field(default_factory=kernels, validate_default=True)
    enable_dump: StrictBool = False
    save_dump_path: StrictStr = "."

    @field_validator("mode")
    @classmethod
    def _check_mode(cls, mode: int) -> int:
        if mode not in (GRAPH_MODE, PYNATIVE_MODE):
            raise _reject(
                f"the argument 'mode' should be context.GRAPH_MODE (0) or context.PYNATIVE_MODE (1), but got {mode}."
            )
        return mode

    @field_validator("device_target")
    @classmethod
    def _check_device_target(cls, target: str) -> str:
        if target not in _TARGETS:
            raise _reject(f"the argument 'device_target' must be one of {_TARGETS}, but got {target}.")
        return "Ascend" if target == "Davinci" else target

    @field_validator("device_id")
    @classmethod
    def _check_device_id(cls, device_id: int) -> int:
        if not 0 <= device_id <= 4095:
            raise _reject(f"the argument 'device_id' must be in range [0, 4095], but got {device_id}.")
        return device_id

    @field_validator("save_graphs")
    @classmethod
    def _check_save_graphs(cls, level: bool | int) -> int:
        number = 2 if level is True else int(level)
        if not 0 <= number <= 3:
            raise PydanticCustomError(
                "context", "{text}", {"text": f"value for save_graphs should be 0-3 but got '{level}'"}
            )
        return number

    @field_validator("deterministic")
    @classmethod
    def _check_deterministic(cls, switch: str) -> str:
        if switch not in _SWITCHES:
            raise _reject(f"the argument 'deterministic' must be one of {_SWITCHES}, but got {switch}.")
        return switch

    @field_validator("jit_syntax_level")
    @classmethod
    def _check_jit_syntax_level(cls, level: int) -> int:
        if level not in (STRICT, COMPATIBLE, LAX):
            text = f"For 'jit_syntax_level', the value should be context.STRICT or context.LAX, but got {level}."
            raise PydanticCustomError("context", "{text}", {"text": text})
        return level

    @field_validator("jit_level")
    @classmethod
    def _check_jit_level(cls, level: str) -> str:
        if level:
            check_jit_level(level)
        return level

    @field_validator("jit_config")
    @classmethod
    def _check_jit_config(cls, config: dict[str, Any] | None) -> dict[str, Any] | None:
        check_jit_level((config or {}).get("jit_level", "O0"))
        return config


def check_jit_level(level: Any) -> None:
    """Raises: ValueError for a level that does not exist."""
    if level not in _LEVELS:
        text = f"For 'jit_config', the value of argument jit_level must be one of {_LEVELS}, but got {level}."
        raise PydanticCustomError("context", "{text}", {"text": text})


class JitConfig:
    """How a graph is compiled. One setting acts here: `jit_level` O0 decides on the folders of a dump through ACL.

    Raises: ValueError for an unknown level or mode.
    """

    def __init__(self, jit_level: str = "O1", exc_mode: str = "auto", **kwargs: Any) -> None:
        if jit_level:
            check_jit_level(jit_level)
        if exc_mode not in ("auto", "sink", "no_sink"):
            raise ValueError(f"For 'JitConfig', 'exc_mode' must be one of ['auto', 'sink', 'no_sink'], got {exc_mode}.")
        self.jit_config_dict = {"jit_level": jit_level, "exc_mode": exc_mode, **kwargs}

    @property
    def jit_level(self) -> str:
        """The level, "" when it is left to the context."""
        return str(self.jit_config_dict["jit_level"])


_settings = ContextSettings()
choose_providers(_settings.kernel_backend)


def _choose_overflow_mode() -> None:
    """On an Ascend profile the environment chooses between Inf and saturation.   Source: CANN and MindSpore, both."""
    mode, is_inf_nan = os.environ.get("MS_ASCEND_CHECK_OVERFLOW_MODE"), os.environ.get("INF_NAN_MODE_ENABLE")
    saturate(
        _settings.device_target == "Ascend" and (mode == "SATURATION_MODE" or (mode is None and is_inf_nan == "0"))
    )


@located()
def set_context(**kwargs: Any) -> None:
    """Change settings; all of them or, when one is refused, none.

    Raises: ValueError for an unknown key or value, TypeError for a value of the wrong type, with MindSpore's text.
    """
    global _settings
    fields = ContextSettings.model_fields
    for key in kwargs:
        if key not in fields:
            raise ValueError(
                f"For 'context.set_context', the keyword argument {key} is not recognized! "
                f"{_GUIDE.format('set_context')} {did_you_mean(key, fields)}".rstrip()
            )
    try:
        _settings = ContextSettings(**{**_settings.model_dump(), **kwargs})
    except ValidationError as error:
        raise _original_error(error, kwargs) from None
    if "kernel_backend" in kwargs:
        choose_providers(kwargs["kernel_backend"])
    _choose_overflow_mode()


def get_context(attr_key: str) -> Any:
    """One setting.   Raises: ValueError for an unknown key."""
    if attr_key not in ContextSettings.model_fields:
        raise ValueError(
            f"For 'context.get_context', the argument {attr_key} is not recognized! "
            f"{_GUIDE.format('get_context')} {did_you_mean(attr_key, ContextSettings.model_fields)}".rstrip()
        )
    return getattr(_settings, attr_key)


def context_jit_level() -> str:
    """Level that `set_context` chose, "" for none."""
    return str((_settings.jit_config or {}).get("jit_level", _settings.jit_level))


def reset_context() -> None:
    """All settings back to their defaults."""
    global _settings
    _settings = ContextSettings()
    choose_providers(_settings.kernel_backend)
    _choose_overflow_mode()


def set_device(device_target: str, device_id: int | None = None) -> None:
    """Choose the device profile.   Raises: as `set_context`."""
    set_context(device_target=device_target, **({} if device_id is None else {"device_id": device_id}))


def get_current_device() -> tuple[str, int]:
    """Device profile and number."""
    return _settings.device_target, _settings.device_id


def set_deterministic(deterministic: bool) -> None:
    """Accepted: runs repeat themselves anyway."""
    set_context(deterministic="ON" if deterministic else "OFF")


_EXPECTED_TYPES = {
    "int_type": int,
    "string_type": str,
    "bool_type": bool,
    "dict_type": dict,
    "float_type": float,
    "literal_error": str,
}


def _original_error(error: ValidationError, kwargs: dict[str, Any]) -> Exception:
    details = error.errors(include_url=False)[0]
    key = str(details["loc"][0])
    expected = _EXPECTED_TYPES.get(details["type"])
    if details["type"] == "literal_error":
        return ValueError(
            f"For 'context.set_context', the argument '{key}' must be one of {_SWITCHES}, but got {kwargs[key]}."
        )
    if expected is None:
        return ValueError(details["msg"])
    return TypeError(f"The parameter '{key}' must be {expected}, but got {type(kwargs[key])}")
