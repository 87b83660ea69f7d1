"""The two JSON files that ATC takes for a model which runs on several devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from torch import distributed

from msdump.frontends.torchair.debug_save.safe_files import write_safe_text
from msdump.frontends.torchair.ge.graph import GeGraph

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
