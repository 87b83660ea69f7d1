"""dynamo_export: one graph of a model, its weights and what leads a person through it, as files.

With several devices: the two JSON files that ATC takes for a model which runs on them.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch._functorch.aot_autograd import aot_module_simplified
from torch.fx import GraphModule

from msdump.errors import ConfigError
from msdump.formats.atomic import write_file
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.debug_save.safe_files import FILE_MODE, make_safe_dirs, refuse_link, write_safe_text
from msdump.torchair.export.air import WeightFolder, air_bytes, store_weights
from msdump.torchair.ge.convert import convert
from msdump.torchair.ge.graph import GeGraph
from msdump.torchair.ge.passes import GE_PASSES
from msdump.torchair.graph_dump.emit import tensorboard_text
from msdump.torchair.passes.pipeline import GE_MODE, run_fx_passes

log = logging.getLogger("torchair")

READABLE = "dynamo.pbtxt"
# An exported model writes its inputs itself; here it is done after the graph has run.
_NOT_IN_A_FILE = "mapping_assign_op_to_graph_output"
_GE = "max-autotune"
_graph_ids = itertools.count(1)


class _ExportedError(Exception):
    """Ends the run of the model once its files are there."""


@dataclass(frozen=True)
class Export:
    """Where the files go, and which there are.

    rank  of this process in a job of torch.distributed; None without one
    """

    folder: Path
    name: str
    rank: int | None
    config: CompilerConfig

    @property
    def model_file(self) -> Path:
        """Path of the .air file; with several ranks their number ends the name."""
        return self.folder / f"{self.name}{'' if self.rank is None else self.rank}.air"

    @property
    def own_folder(self) -> Path:
        """What belongs to this rank alone: the readable graph, and weights that have files."""
        return self.folder if self.rank is None else self.folder / f"rank_{self.rank}"


def dynamo_export(
    args: Sequence[object],
    kwargs: dict[str, Any],
    model: object,
    export_path: str,
    export_name: str,
    dynamic: bool,
    config: CompilerConfig,
) -> None:
    """See `torchair.dynamo_export`."""
    if not isinstance(model, torch.nn.Module):
        raise ConfigError(f"dynamo_export: expected model to be a torch.nn.Module, got {type(model).__name__}.")
    if config.mode.value != _GE:
        raise ConfigError(
            f"dynamo_export: expected config.mode {_GE!r}, got {config.mode.value!r}. Only a GE graph can be exported."
        )
    if config.experimental_config.frozen_parameter:
        raise ConfigError(
            "dynamo_export: expected config.experimental_config.frozen_parameter to be off, got it on. A weight has no "
            "address in a file."
        )
    is_job = torch.distributed.is_available() and torch.distributed.is_initialized()
    export = Export(Path(export_path), Path(export_name).name, torch.distributed.get_rank() if is_job else None, config)
    for path in (export.folder, export.model_file):
        refuse_link(path)
    named = {name: tensor for pairs in (model.named_buffers(), model.named_parameters()) for name, tensor in pairs}

    def backend(module: GraphModule, example_inputs: Sequence[object]) -> Any:
        def compile_graph(aot_module: GraphModule, aot_inputs: Sequence[object]) -> Any:
            return _writer(_ge_graph(aot_module, aot_inputs, config), named, export)

        compiler: Any = compile_graph
        return aot_module_simplified(
            module,
            example_inputs,
            fw_compiler=compiler,
            inference_compiler=compiler,
            keep_inference_input_mutations=True,
        )

    untyped: Any = torch
    compiled = untyped.compile(model, backend=backend, fullgraph=True, dynamic=dynamic)
    try:
        with torch.no_grad():
            compiled(*args, **kwargs)
    except _ExportedError:
        log.info("dynamo_export: %s", export.model_file)
        return
    raise ConfigError(
        f"dynamo_export: expected {type(model).__name__} to compute something, got a model without an operator."
    )


def _ge_graph(module: GraphModule, example_inputs: Sequence[object], config: CompilerConfig) -> GeGraph:
    optimized = run_fx_passes(module, example_inputs, config, GE_MODE)
    graph = convert(optimized, next(_graph_ids))
    for name, apply in GE_PASSES:
        if name != _NOT_IN_A_FILE:
            apply(graph, config)
    graph.lint()
    return graph


def _writer(graph: GeGraph, named: dict[str, torch.Tensor], export: Export) -> Any:
    """What runs in the graph's place: it writes the files with the weights that it is called with, and ends the run."""

    def write(args: list[Any]) -> Any:
        make_safe_dirs(export.folder)
        make_safe_dirs(export.own_folder)
        store_weights(graph, args, named, WeightFolder(export.own_folder))
        if export.config.export.experimental.enable_record_nn_module_stack:
            _record_modules(graph)
        groups = groups_of(graph)
        write_safe_text(export.own_folder / READABLE, tensorboard_text(graph, is_optimized=True))
        refuse_link(export.model_file)
        write_file(export.model_file, [air_bytes(graph)], FILE_MODE, replace=True)
        if export.config.export.experimental.auto_atc_config_generated and export.rank == 0 and groups:
            write_deployment(export.folder, export.name, groups)
        raise _ExportedError

    outside_dynamo: Any = torch._dynamo.disable
    run = outside_dynamo(write)
    run._boxed_call = True
    return run


def _record_modules(graph: GeGraph) -> None:
    """Note the modules that each operator was called in, outermost first, as `path: class`."""
    for op in graph.ops:
        stack = op.fx_node.meta.get("nn_module_stack") if op.fx_node is not None else None
        if stack:
            names = [f"{path}: {getattr(kind, '__qualname__', kind)}" for path, kind in stack.values()]
            op.attrs["nn_module_stack"] = ", ".join(names)


RELATION, CLUSTER = "model_relation_config.json", "numa_config.json"
_COLLECTIVE = "Hcom"


def groups_of(graph: GeGraph) -> dict[str, list[int]]:
    """Process group -> its ranks, for each group that a collective of the graph names; collectives get `ranklist`."""
    groups: dict[str, list[int]] = {}
    for op in graph.ops:
        if op.type.startswith(_COLLECTIVE) and "group" in op.attrs:
            name = str(op.attrs["group"])
            if name not in groups:
                untyped: Any = distributed
                group = untyped.distributed_c10d._resolve_process_group(name)
                groups[name] = list(distributed.get_process_group_ranks(group))
            op.attrs["ranklist"] = groups[name]
    return groups


def write_deployment(folder: Path, export_name: str, groups: dict[str, list[int]]) -> None:
    """Which file runs on which device, and which devices there are: all of them on the first node.

    Raises: WriteError.
    Source: TorchAir, dynamo_export with `auto_atc_config_generated`; to be changed by hand for more nodes.
    """
    ranks = range(distributed.get_world_size())
    models = {rank: f"{export_name}{rank}.air" for rank in ranks}
    relation = {
        "deploy_config": [{"submodel_name": models[rank], "deploy_device_id_list": f"0:0:{rank}"} for rank in ranks],
        "model_name_to_instance_id": [{"submodel_name": models[rank], "model_instance_id": rank} for rank in ranks],
        "comm_group": [{"group_name": name, "group_rank_list": str(members)} for name, members in groups.items()],
        "rank_table": [{"rank_id": rank, "model_instance_id": rank} for rank in ranks],
    }
    node = {
        "node_id": 0,
        "node_type": "ATLAS800",
        "ipaddr": "127.0.0.1",
        "port": 29500,
        "item_list": [{"item_id": rank} for rank in ranks],
    }
    cluster = {
        "cluster": [{"cluster_nodes": [node], "nodes_toplogy": {}}],
        "item_def": [{"item_type": "Ascend910"}],
        "node_def": [{"item": [{"item_type": "Ascend910"}]}],
    }
    for name, content in ((RELATION, relation), (CLUSTER, cluster)):
        write_safe_text(folder / name, json.dumps(content, indent=4, ensure_ascii=False))
