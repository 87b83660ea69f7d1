"""`torch.compile(model, backend="npugraph_ex", options={...})`: the capturing mode under a name of its own."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from msdump.errors import ConfigError, did_you_mean, refused
from msdump.torchair.backend import require_torch
from msdump.torchair.configs.compiler_config import CompilerConfig, without_effect
from msdump.torchair.debug_save.debug_log import NPUGRAPH_EX, open_debug_log, setup_logger
from msdump.torchair.options import Option, dictionary

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch.fx import GraphModule

log = logging.getLogger("msdump")

MODE = "npugraph_ex"
_PACKAGE = "msdump.torchair"
# Source: PyTorch, where backends of other distributions are found.
_GROUP = "torch_dynamo_backends"

# Option of the backend -> option of the CompilerConfig, and whether it says the opposite.
# Source: TorchAir, the backend npugraph_ex.
_OPTIONS: dict[str, tuple[str, bool]] = {
    "capture_error_mode": ("experimental_config.aclgraph._capture_error_mode", False),
    "capture_limit": ("debug.aclgraph.static_capture_size_limit", False),
    "clone_input": ("debug.aclgraph.clone_input", False),
    "clone_output": ("debug.aclgraph.enable_output_clone", False),
    "data_dump_dir": ("dump_config.dump_path", False),
    "data_dump_stage": ("dump_config.data_dump_stage", False),
    "deadlock_check": ("debug.deadlock_check", False),
    "disable_static_kernel_compile_cache": (
        "experimental_config.aclgraph._disable_static_kernel_compile_cache",
        False,
    ),
    "dump_tensor_data": ("dump_config.enable_dump", False),
    "force_eager": ("debug.run_eagerly", False),
    "force_recapture": ("experimental_config.aclgraph._force_recapture", False),
    "frozen_parameter": ("experimental_config.frozen_parameter", False),
    "inplace_pass": ("debug.aclgraph.disable_reinplace_inplaceable_ops_pass", True),
    "input_inplace_pass": ("debug.aclgraph.disable_reinplace_input_mutated_ops_pass", True),
    "pattern_fusion_pass": ("experimental_config.pattern_fusion_pass", False),
    "post_grad_custom_post_pass": ("post_grad_custom_post_pass", False),
    "post_grad_custom_pre_pass": ("post_grad_custom_pre_pass", False),
    "remove_cat_ops": ("debug.aclgraph.remove_cat_ops", False),
    "remove_noop_ops": ("experimental_config.remove_noop_ops", False),
    "reuse_graph_pool_in_same_fx": ("debug.aclgraph.disable_mempool_reuse_in_same_fx", True),
    "static_kernel_compile": ("experimental_config.aclgraph._aclnn_static_shape_kernel", False),
    "super_kernel_debug_options": ("experimental_config.aclgraph._super_kernel_debug_options", False),
    "super_kernel_optimize": ("experimental_config.aclgraph._super_kernel_optimize", False),
    "super_kernel_optimize_options": ("experimental_config.aclgraph._super_kernel_optimize_options", False),
    "use_graph_pool": ("aclgraph_config.use_custom_pool", False),
}
_SWITCHES = (
    "disable_static_kernel_compile_cache",
    "force_recapture",
    "static_kernel_compile",
    "super_kernel_optimize",
)
_ALLOWED = sorted(_OPTIONS)
# Options that a log line of this process has named as without effect.
_warned: set[str] = set()


def by_name(module: GraphModule, example_inputs: Sequence[object], **settings: Any) -> Any:
    """What PyTorch finds under the name: TorchAir's own backend where that is installed, else msdump's.

    Edges:  in a script that has msdump's stand-in for torchair, msdump's.
    Raises: as `backend`, or whatever the other backend raises.
    """
    installed = None if _stands_in() else _other_backend()
    return (backend if installed is None else installed)(module, example_inputs, **settings)


def _stands_in() -> bool:
    return getattr(sys.modules.get("torchair"), "__name__", "") == _PACKAGE


@functools.cache
def _other_backend() -> Callable[..., Any] | None:
    """The backend of this name that another distribution has registered."""
    for entry in entry_points(group=_GROUP, name=MODE):
        if not entry.value.startswith("msdump."):
            log.info(
                "npugraph_ex: %s serves this name. For msdump's, pass msdump.torchair.npugraph_ex.backend.", entry.value
            )
            installed: Callable[..., Any] = entry.load()
            return installed
    return None


def backend(
    module: GraphModule, example_inputs: Sequence[object], *, options: dict[str, Any] | None = None, **others: object
) -> Any:
    """Backend for `torch.compile` that captures graphs, and dumps as its options say.

    Edges:  an option that means something to an NPU alone is taken, and named once in the log.
    Raises: ConfigError (a ValueError) for an option that is unknown or has a value that it does not take.
    """
    require_torch()
    given = {**(options or {}), **others}
    config = config_from_options(given)
    _tell_without_effect(config, given)
    setup_logger()
    open_debug_log(NPUGRAPH_EX)
    from msdump.torchair.aot import make_backend

    compile_graph: Callable[..., Any] = make_backend(config, {}, NPUGRAPH_EX)
    return compile_graph(module, example_inputs)


def config_from_options(options: dict[str, Any]) -> CompilerConfig:
    """CompilerConfig that says what the options say.   Raises: ConfigError."""
    config = CompilerConfig()
    config.mode = MODE
    own = _own_options()
    for name, value in options.items():
        if name not in _OPTIONS:
            first_line = f"Invalid option '{name}', allowed options: {_ALLOWED}"
            place, advice = 'torch.compile(backend="npugraph_ex", options=...)', did_you_mean(name, _ALLOWED)
            raise ConfigError(refused(first_line, place, "these names", repr(name), advice))
        if name in own:
            own[name].value = value
            if own[name].is_default:
                continue
        path, is_opposite = _OPTIONS[name]
        *groups, last = path.split(".")
        group: Any = config
        for part in groups:
            group = getattr(group, part)
        setattr(group, last, (not value) if is_opposite and isinstance(value, bool) else value)
    return config


def _own_options() -> dict[str, Option]:
    """Options that the CompilerConfig of TorchAir has no public place for, and so no check."""
    own: dict[str, Option] = {name: Option(False, [True, False]) for name in _SWITCHES}
    own["super_kernel_debug_options"] = Option(None, dictionary, is_raw=True)
    own["super_kernel_optimize_options"] = Option(None, dictionary, is_raw=True)
    for name, option in own.items():
        option.where = f"npugraph_ex option {name}"
    return own


def _tell_without_effect(config: CompilerConfig, options: dict[str, Any]) -> None:
    paths = {option.where.removeprefix("config.") for option in without_effect(config)}
    names = [name for name in options if _OPTIONS[name][0] in paths and name not in _warned]
    _warned.update(names)
    if names:
        text = ", ".join(f"{name} = {options[name]!r}" for name in names)
        log.warning("npugraph_ex: these options have no effect without an NPU: %s.", text)
