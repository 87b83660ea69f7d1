"""torchair.inference: functions whose compilation leaves a file, and that file in readable form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msdump.errors import ConfigError, did_you_mean
from msdump.torchair.configs.compiler_config import CompilerConfig

__all__ = ["cache_compile", "readable_cache"]


def cache_compile(
    func: Callable[..., Any],
    *,
    config: CompilerConfig | None = None,
    backend: object = None,
    dynamic: bool = True,
    cache_dir: str | None = None,
    global_rank: int | None = None,
    tp_rank: int | None = None,
    pp_rank: int | None = None,
    ge_cache: bool = False,
    custom_decompositions: dict[Any, Callable[..., Any]] | None = None,
    **kwargs: object,
) -> Callable[..., Any]:
    """The method, compiled as one graph without gradients; the graph is kept in a file.

    func         a method of a torch.nn.Module, which compiles to a single graph
    config       options of the compiler; None: those of `backend`, else the defaults
    backend      from `get_npu_backend`
    dynamic      as `torch.compile` has it
    cache_dir    root of the files; None: TORCHAIR_CACHE_HOME, else `.torchair_cache`
    global_rank, tp_rank, pp_rank   parts of the path; the first one is taken from torch.distributed
    ge_cache     part of the path; there is no compiled GE graph to keep here
    custom_decompositions   operator -> function, as `get_npu_backend` takes them
    Edges:   the method is traced in every process, with PyTorch's checks of what it was traced for. A file of the same
             graph is read and left as it is; one that is stale or damaged is written anew. A method that needs a second
             graph has no file.
    Raises:  ConfigError (a ValueError) for other functions, and for a config that is not the backend's.
    Source:  TorchAir, inference.cache_compile.
    """
    from msdump.torchair.inference.cached_function import CachedFunction, CacheLocation, require_method

    require_method(func)
    own = getattr(next(iter(getattr(backend, "args", ())), None), "config", None)
    if backend is not None and not isinstance(own, CompilerConfig):
        raise ConfigError(f"cache_compile: expected backend to come from torchair.get_npu_backend(), got {backend!r}.")
    if config is not None and own is not None and config is not own:
        raise ConfigError(
            "cache_compile: expected the config that the backend was made with, got another one. Give one of the two."
        )
    location = CacheLocation(cache_dir, global_rank, tp_rank, pp_rank, ge_cache)
    return CachedFunction(
        func, config or own or CompilerConfig(), dynamic, location, custom_decompositions or {}, kwargs
    )


def readable_cache(cache_bin: str, print_output: bool = True, file: str | None = None) -> str:
    """Text of a file of `cache_compile`: what it is of, the graph's inputs, options and code.

    print_output  print it as well
    file          path that it is written to as well, as Python source
    Raises:       ConfigError when there is no such file, or a symbolic link; FormatError for anything but a cache.
    Source:       TorchAir, inference.readable_cache.
    """
    from msdump.torchair.inference.cache_file import readable

    return readable(cache_bin, print_output, file)


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f'torchair.inference: expected one of {__all__}, got "{name}". {did_you_mean(name, __all__)} '
        "Gears of sizes need an NPU: compile with dynamic=True."
    )
