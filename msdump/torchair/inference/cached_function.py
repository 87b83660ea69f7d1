"""CachedFunction: a method that is compiled at its first call and leaves a file that says what it became."""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import MethodType
from typing import Any

import torch
from torch.fx import GraphModule

from msdump.config.environment import TORCHAIR_CACHE
from msdump.errors import ConfigError, FormatError, WriteError
from msdump.torchair.backend import get_npu_backend
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.inference.cache_file import FILE, VERSION, CompiledModule, load, save
from msdump.torchair.ranks import process_rank

log = logging.getLogger("torchair")
# What a script gets otherwise than it says, it shall see: the log of TorchAir is silent below ERROR.
own_log = logging.getLogger("msdump")
_GE_MODE = "max-autotune"
_IGNORED = ("fullgraph",)  # it always is one


@dataclass(frozen=True)
class CacheLocation:
    """Location of the file; see `cache_compile`."""

    cache_dir: str | None
    global_rank: int | None
    tp_rank: int | None
    pp_rank: int | None
    ge_cache: bool

    def path(self, method: MethodType, config: CompilerConfig, dynamic: bool) -> Path:
        """`{cache_dir}/{class}_{dynamic or static}_{digest}[/ranks]/{method}/compiled_module`.

        Source: TorchAir; the digest is of the module's text and the options.
        """
        root = self.cache_dir or os.environ.get(TORCHAIR_CACHE) or ".torchair_cache"
        text = "\n".join([str(method.__self__), *option_lines(config)])
        parts = [type(method.__self__).__name__, "dynamic" if dynamic else "static"]
        if config.mode.value != _GE_MODE:
            parts.append("aclgraphcache")
        elif self.ge_cache:
            parts.append("gecache")
        parts.append(hashlib.md5(text.encode(), usedforsecurity=False).hexdigest())
        return Path(os.path.abspath(root)) / "_".join(parts) / self._ranks() / method.__name__ / FILE

    def _ranks(self) -> str:
        world_size, rank = process_rank()
        parts = []
        if world_size > 1:
            parts.append(f"world{world_size}global_rank{rank if self.global_rank is None else self.global_rank}")
        if self.tp_rank is not None:
            parts.append(f"tp_rank{self.tp_rank}")
        if self.pp_rank is not None:
            parts.append(f"pp_rank{self.pp_rank}")
        return "_".join(parts)


class CachedFunction:
    """Result of `cache_compile`. Any thread may call it."""

    def __init__(
        self,
        method: Any,
        config: CompilerConfig,
        dynamic: bool,
        location: CacheLocation,
        decompositions: dict[Any, Callable[..., Any]],
        others: dict[str, Any],
    ) -> None:
        self._method: MethodType = method
        self._config = config
        self._dynamic = dynamic
        self._location = location
        self._graphs = 0
        self._lock = threading.Lock()
        self._name = f"{method.__qualname__}{inspect.signature(method)}"
        self._inner = get_npu_backend(compiler_config=config, custom_decompositions=decompositions)
        untyped: Any = torch
        self._compiled = untyped.compile(method, backend=self._compile, fullgraph=True, dynamic=dynamic)
        unread = [name for name in others if name not in _IGNORED]
        if location.ge_cache:
            unread.append("ge_cache")
        if unread:
            own_log.warning("cache_compile: these arguments have no effect here: %s.", ", ".join(unread))

    def __call__(self, *args: object, **kwargs: object) -> Any:
        with torch.no_grad():
            return self._compiled(*args, **kwargs)

    def _compile(self, module: GraphModule, example_inputs: Sequence[object], **options: object) -> Any:
        # Compiling changes the graph module.
        became = self._described(module, example_inputs)
        compiled = self._inner(module, example_inputs, **options)
        with self._lock:
            self._graphs += 1
            count = self._graphs
        path = self._location.path(self._method, self._config, self._dynamic)
        try:
            _keep(path, became) if count == 1 else _drop(path, self._name, count)
        except (WriteError, OSError) as error:
            own_log.warning("Skip cache of %s: %s", self._name, error)
        return compiled

    def _described(self, module: GraphModule, example_inputs: Sequence[object]) -> CompiledModule:
        placeholders = [node for node in module.graph.nodes if node.op == "placeholder"]
        return CompiledModule(
            self._name,
            str(datetime.now(timezone.utc)),
            VERSION,
            torch.__version__,
            tuple(f"{node.name}: {_shown(value)}" for node, value in zip(placeholders, example_inputs, strict=True)),
            tuple(option_lines(self._config)),
            module.code.strip(),
        )


def require_method(func: object) -> None:
    """Raises: ConfigError for anything but a method of a module."""
    if not isinstance(func, MethodType) or not isinstance(func.__self__, torch.nn.Module):
        raise ConfigError(
            f"cache_compile: expected a method of a torch.nn.Module, such as self.prompt, got {func!r}. "
            "It must carry no decorator."
        )


def option_lines(config: CompilerConfig) -> list[str]:
    """`name=value` of each option that is not the default; a function by its name."""
    return [
        f"{option.where}={getattr(option.raw, '__qualname__', option.raw)}"
        for option in config.options()
        if not option.is_default
    ]


def _keep(path: Path, became: CompiledModule) -> None:
    """Leave the file of this graph as it is; write it where there is none, or another one."""
    if os.path.lexists(path):
        try:
            present = load(path)
        except (FormatError, OSError) as error:
            log.warning("Clear broken cache %s as %s", path, error)
        else:
            changed = present.difference(became)
            if not changed:
                log.info("Cache %s loaded from %s", present, path)
                return
            log.warning("Clear broken cache %s as it is of another graph: %s differs", path, changed)
        path.unlink()
    save(path, became)
    log.info("Cache %s saved to %s", became, path)


def _drop(path: Path, name: str, count: int) -> None:
    path.unlink(missing_ok=True)
    if count == 2:
        log.warning(
            "Skip cache as %s recompiled, set torch._logging.set_logs(recompiles=True) for details. Give each case a "
            "method of its own.",
            name,
        )


def _shown(value: object) -> str:
    if isinstance(value, torch.Tensor):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}] on {value.device}"
    return repr(value)
