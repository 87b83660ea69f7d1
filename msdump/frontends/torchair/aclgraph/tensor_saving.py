"""`dump_config.enable_dump` in the capturing modes: a `.pt` file for each value of the graph."""

from __future__ import annotations

import functools
import io
import logging
import os
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch.fx import GraphModule, Node

from msdump import measuring
from msdump.errors import WriteError
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.paths.torchair import rank_dir
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.dump_tally import captured
from msdump.frontends.torchair.ranks import process_rank, rank_folders
from msdump.frontends.torchair.step_files import limited_files, umask

log = logging.getLogger("msdump")

ORIGINAL = "original"
_CLASH = ", in place of those with equal names"
# Runs of each file name, in this process: nothing is overwritten by another graph, nor by a later step.
_counts: Counter[str] = Counter()
_broken: set[str] = set()
_lock = threading.Lock()


def is_on(config: CompilerConfig) -> bool:
    return bool(config.dump_config.enable_dump)


def save_npugraph_tensor(tensor: torch.Tensor, save_path: str) -> None:
    """Save a tensor to `{save_path without .pt}_device_{device}_{count}.pt`; `torch.load` reads it.

    device  index of the CUDA device, 0 on the CPU;   count  how often this path was saved to, from 0
    Edges:  views are saved alone, without the memory around them. A file that cannot be written ends the dump into
            that folder, is said once, and leaves the model alone.
    Source: TorchAir, torch.ops.npu.save_npugraph_tensor.
    """
    measuring.note_run(save_path, captured)
    began = time.perf_counter()
    path = Path(save_path)
    folder = os.fspath(path.parent)
    if folder in _broken:
        return
    stem = f"{path.stem}_device_{tensor.device.index or 0}"
    mask = umask()
    try:
        if not rank_folders.enter(folder, 0o777 & ~mask, _CLASH):
            return
    except WriteError as error:
        _fail(folder, error)
        return
    with _lock:
        number = _counts[f"{folder}/{stem}"]
        _counts[f"{folder}/{stem}"] += 1
    try:
        data = io.BytesIO()
        torch.save(tensor.detach().clone(), data)
        make_dirs(folder, 0o777 & ~mask)
        content = data.getbuffer()
        file = path.with_name(f"{stem}_{number}.pt")
        publish = functools.partial(write_file, file, [content], 0o666 & ~mask, replace=True)
        limited = limited_files(folder)
        if number:
            # Nothing says when a replay ends: the one before has, when a value comes again.
            limited.end_iteration(0, number - 1)
        limited.write(Path(os.path.realpath(folder)), file.name, content.nbytes, 0, number, publish)
        captured.add(folder, 1, content.nbytes, seconds=time.perf_counter() - began)
    except (WriteError, RuntimeError, NotImplementedError, MemoryError) as error:
        _fail(folder, error)


def _fail(folder: str, error: Exception) -> None:
    """A value is lost, and the dump into the folder ends; later values are not counted."""
    with _lock:
        is_first = folder not in _broken
        _broken.add(folder)
    captured.fail(error)
    captured.add(folder, 0, 0, lost=1)
    if is_first:
        log.error("The dump is not complete, the model goes on without it. %s", error)


def with_saved_tensors(module: GraphModule, config: CompilerConfig) -> GraphModule:
    """The module, with a save behind every node that makes one tensor, inputs included.

    Edges: not behind operators of several results, whose parts are saved instead, nor where the script saves itself.
    """
    root = measuring.redirected(Path(os.path.realpath(config.dump_config.dump_path.value)))
    folder = rank_dir(root, *process_rank())
    captured.begin(os.fspath(folder))
    limited_files(os.fspath(folder))  # reads the limits now, so that a wrong one is an error before the first run
    graph = module.graph
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    for node in list(graph.nodes):
        if not _is_saved(node):
            continue
        place = inputs[-1] if node.op == "placeholder" else node
        with graph.inserting_after(place):
            graph.call_function(save_npugraph_tensor, (node, os.fspath(folder / f"{node.name}.pt")))
    graph.lint()
    module.recompile()
    return module


def _is_saved(node: Node) -> bool:
    if node.op not in ("placeholder", "call_function"):
        return False
    if any(user.target is save_npugraph_tensor for user in node.users):
        return False
    value: Any = node.meta.get("val")
    return isinstance(value, torch.Tensor)
