"""`torch.compile(model, backend="npugraph_ex", options={...})`: the capturing mode under a name of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.errors import ConfigError, did_you_mean
from msdump.frontends.torchair.backend import require_torch
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.debug_save.debug_log import open_debug_log, setup_logger
from msdump.frontends.torchair.debug_save.switch import NPUGRAPH_EX

MODE = "npugraph_ex"

# Option of the backend -> option of the CompilerConfig, and whether it says the opposite.
# Source: TorchAir, the backend npugraph_ex.
_OPTIONS: dict[str, tuple[str, bool]] = {
    "capture_limit": ("debug.aclgraph.static_capture_size_limit", False),
    "clone_input": ("debug.aclgraph.clone_input", False),
    "clone_output": ("debug.aclgraph.enable_output_clone", False),
    "data_dump_dir": ("dump_config.dump_path", False),
    "data_dump_stage": ("dump_config.data_dump_stage", False),
    "deadlock_check": ("debug.deadlock_check", False),
    "dump_tensor_data": ("dump_config.enable_dump", False),
    "force_eager": ("debug.run_eagerly", False),
    "inplace_pass": ("debug.aclgraph.disable_reinplace_inplaceable_ops_pass", True),
    "input_inplace_pass": ("debug.aclgraph.disable_reinplace_input_mutated_ops_pass", True),
    "pattern_fusion_pass": ("experimental_config.pattern_fusion_pass", False),
    "post_grad_custom_post_pass": ("post_grad_custom_post_pass", False),
    "post_grad_custom_pre_pass": ("post_grad_custom_pre_pass", False),
    "remove_cat_ops": ("debug.aclgraph.remove_cat_ops", False),
    "remove_noop_ops": ("experimental_config.remove_noop_ops", False),
}
_CAPTURE_ERROR_MODE = "capture_error_mode"
_CAPTURE_ERROR_MODES = ("global", "thread_local", "relaxed")
_ALLOWED = sorted([*_OPTIONS, _CAPTURE_ERROR_MODE])


def backend(module: Any, example_inputs: Any, *, options: dict[str, Any] | None = None, **others: Any) -> Any:
    """Backend of that name; PyTorch finds it by its entry point.

    Raises: ConfigError (a ValueError) for an option that is unknown or has a value that it does not take.
    """
    require_torch()
    config = config_from_options({**(options or {}), **others})
    setup_logger()
    open_debug_log(NPUGRAPH_EX)
    from msdump.frontends.torchair.aot import make_backend

    compile_graph: Callable[..., Any] = make_backend(config, {}, NPUGRAPH_EX)
    return compile_graph(module, example_inputs)


def config_from_options(options: dict[str, Any]) -> CompilerConfig:
    """CompilerConfig that says what the options say.   Raises: ConfigError."""
    config = CompilerConfig()
    config.mode = MODE
    for name, value in options.items():
        if name == _CAPTURE_ERROR_MODE:
            if value not in _CAPTURE_ERROR_MODES:
                raise ConfigError(
                    f"npugraph_ex option {name}: expected one of {list(_CAPTURE_ERROR_MODES)}, got {value!r}."
                )
            continue
        if name not in _OPTIONS:
            raise ConfigError(
                f"Invalid option '{name}', allowed options: {_ALLOWED}\n"
                f'torch.compile(backend="npugraph_ex", options=...): expected these names, got {name!r}. '
                f"{did_you_mean(name, _ALLOWED)}".rstrip()
            )
        path, is_opposite = _OPTIONS[name]
        *groups, last = path.split(".")
        group: Any = config
        for part in groups:
            group = getattr(group, part)
        setattr(group, last, (not value) if is_opposite and isinstance(value, bool) else value)
    return config
