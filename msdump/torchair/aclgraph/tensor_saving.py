"""`dump_config.enable_dump` in the capturing modes: a `.pt` file for each value of the graph."""

from __future__ import annotations

import io
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Node

from msdump.dumpers.limits import Footprint
from msdump.errors import WriteError
from msdump.formats.npy import NpyWriter
from msdump.formats.paths.torchair import rank_dir
from msdump.process import dry_run
from msdump.tensors.arrays import Array
from msdump.tensors.records import OUTPUT, TensorRecord
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.file_dump import FolderDump, captured
from msdump.torchair.ranks import process_rank

ORIGINAL = "original"
_CLASH = ", in place of those with equal names"
# Runs of each file name, in this process: nothing is overwritten by another graph, nor by a later step.
_counts: Counter[str] = Counter()
_dumps: dict[str, FolderDump] = {}
_lock = threading.Lock()


def is_on(config: CompilerConfig) -> bool:
    return bool(config.dump_config.enable_dump)


def save_npugraph_tensor(tensor: torch.Tensor, save_path: str) -> None:
    """Save a tensor to `{save_path without .pt}_device_{device}_{count}.pt`; `torch.load` reads it.

    device  index of the CUDA device, 0 on the CPU;   count  how often this path was saved to, from 0
    Edges:  views are saved alone, without the memory around them. A file that cannot be written ends the dump into
            that folder, is logged once, and does not stop the model.
    Source: TorchAir, torch.ops.npu.save_npugraph_tensor.
    """
    dry_run.note_run(save_path, captured)
    path = Path(save_path)
    folder = os.fspath(path.parent)
    dump = _dump(folder)
    if not dump.enter(folder, values=1):
        return
    stem = f"{path.stem}_device_{tensor.device.index or 0}"
    with _lock:
        number = _counts[f"{folder}/{stem}"]
        _counts[f"{folder}/{stem}"] += 1
    with dump.tally.stop_on_failure(1, is_timed=True) as attempt:
        record = TensorRecord("", stem, 0, 0, 0, OUTPUT, 0, "uint8", _content(tensor), iteration=number)
        # Otherwise another thread could end the iteration that this one writes.
        with dump.lock:
            if number:
                # Nothing says when a replay ends: the one before has, when a value comes again.
                dump.writer.end_iteration(0, number - 1)
            dump.writer.write([record])
        attempt.count_written(1)


def _content(tensor: torch.Tensor) -> Array:
    """The bytes of the file, which hold more than an array can: layout, device, views.   Raises: WriteError."""
    data = io.BytesIO()
    try:
        torch.save(tensor.detach().clone(), data)
    except RuntimeError as error:
        raise WriteError(str(error)) from error
    return np.frombuffer(data.getbuffer(), np.uint8)


def _dump(folder: str) -> FolderDump:
    """What goes into a folder.   Raises: ConfigError for a limit of the environment that cannot be read."""
    with _lock:
        if folder not in _dumps:
            _dumps[folder] = FolderDump(folder, captured, _writer, _FOOTPRINT, _CLASH)
        return _dumps[folder]


def _writer(
    directory: Callable[[TensorRecord], Path], mode: int, dir_mode: int, _: Callable[[], None], __: object = None
) -> NpyWriter:
    """Of records whose data are the bytes of their files."""
    return NpyWriter(directory, mode, dir_mode, _file_name, content=lambda record: [record.data.data], replaces=True)


def _file_name(record: TensorRecord) -> str:
    return f"{record.op_name}_{record.iteration}.pt"


_FOOTPRINT = Footprint(lambda record, _: record.size_bytes, names=lambda record: (_file_name(record),))


def with_saved_tensors(module: GraphModule, config: CompilerConfig) -> GraphModule:
    """The module, with a save behind every node that makes one tensor, inputs included.

    Edges: not behind operators of several results, whose parts are saved instead, nor where the script saves itself.
    """
    root = dry_run.redirected(Path(os.path.realpath(config.dump_config.dump_path.value)))
    folder = rank_dir(root, *process_rank())
    captured.begin(_dump(os.fspath(folder)))
    graph = module.graph
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    for node in list(graph.nodes):
        if not _is_saved(node):
            continue
        last_input = inputs[-1] if node.op == "placeholder" else node
        with graph.inserting_after(last_input):
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
