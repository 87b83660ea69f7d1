"""ShardingBook: how the tensors of this process lie over the ranks of its job, collected while it runs."""

from __future__ import annotations

import os
import re
import sys
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import fx
from torch.utils._python_dispatch import _disable_current_modes

from msdump.formats.sharding_json import (
    PARTIAL,
    REPLICATE,
    SHARD,
    STRIDED,
    Group,
    Mesh,
    MessageOperand,
    Operand,
    Placement,
    RankSharding,
    TensorSharding,
)
from msdump.frontends.torch.instances import instances_of
from msdump.frontends.torch.tensor_map import TensorMap
from msdump.graph.graph import SAVED
from msdump.tensors.records import INPUT, OUTPUT

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor._dtensor_spec import DTensorSpec

    from msdump.engine.graphs import GraphSession
    from msdump.frontends.torch.graph_from_fx import FxGraph

# Operands whose shardings are known; a program that gives its operators ever new shardings would fill the memory.
_MAX_OPERANDS = 500_000
_OPERATION = re.compile("[a-z_0-9]{1,40}")
# Collectives that leave the same bytes in all ranks of their group.
_EQUALIZING = ("allreduce", "all_reduce", "broadcast", "allgather", "all_gather")
_COLLECTIVES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")


class ShardingBook:
    """Shardings of the tensors that one session dumps. Without process groups it is empty and nothing is written.

    Any thread may call it while it holds what keeps operators of its program apart.
    """

    def __init__(self, session: GraphSession) -> None:
        self._session = weakref.ref(session)
        self._is_changed = True
        self._groups: dict[Group, None] = {}
        self._meshes: dict[Hashable, Mesh | None] = {}
        self._shardings: dict[DTensorSpec, TensorSharding | None] = {}
        # Of plain tensors that are copies in other ranks, too.
        self._replicas: TensorMap[TensorSharding] = TensorMap()
        self._gradients: TensorMap[TensorSharding] = TensorMap()
        self._models: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._called: weakref.WeakSet[torch.nn.Module] = weakref.WeakSet()
        self._latest: dict[tuple[int, str, str, int], TensorSharding | None] = {}
        self._operands: list[Operand] = []
        self._messages: dict[tuple[int, str, str, int], MessageOperand] = {}
        self._all_messages: list[MessageOperand] = []

    @property
    def is_on(self) -> bool:
        """Whether this process is one of several that know each other."""
        return torch.distributed.is_available() and torch.distributed.is_initialized()

    # -- what runs --------------------------------------------------------------------------------

    def note_model(self, module: torch.nn.Module) -> None:
        """A model is about to run: parameters of DistributedDataParallel in it are copies in all ranks of its group,
        and what FSDP2 has gathered is a copy in all ranks of its mesh. So are those of a model that is called behind
        the back of its DistributedDataParallel, whose constructor has made them equal: nothing reduces their gradients.
        """
        if not self.is_on:
            return
        parts = set(module.modules())
        for part in parts:
            if isinstance(part, torch.nn.parallel.DistributedDataParallel):
                self._note_replicas(part)
            elif hasattr(part, "_get_fsdp_state"):
                self._note_gathered(part)
        if module not in self._called:
            self._called.add(module)
            for model in _wrappers():
                if model.module in parts:
                    self._note_replicas(model)

    def note_all_models(self) -> None:
        """As `note_model`, of all models of the process: a compiled graph does not tell whose parameters it is given.
        It takes long.
        """
        if not self.is_on:
            return
        for model in _wrappers():
            self._note_replicas(model)
        for part in (part for kind in _fsdp_classes() for part in instances_of(kind)):
            self._note_gathered(part)

    def note_gradients(self) -> None:
        """The backward is over: gradients of such parameters are copies now, unless the model is set to wait."""
        for model in self._models:
            if getattr(model, "require_forward_param_sync", True):
                for parameter in model.parameters():
                    sharding = self._replicas.get(parameter)
                    if sharding is not None and parameter.grad is not None:
                        self._gradients.set(parameter.grad, sharding)

    def note_collective(self, function: Any, arguments: Sequence[object]) -> Mesh | None:
        """A collective runs.   Returns: the ranks of its group where these have equal results, else None."""
        if getattr(function, "namespace", "") not in _COLLECTIVES:
            return None
        group = next(filter(None, map(process_group, reversed(arguments))), None)
        mesh = None if group is None else self._group_mesh(group, "replicas")
        is_equal = any(function._schema.name.partition("::")[2].lstrip("_").startswith(name) for name in _EQUALIZING)
        return mesh if is_equal else None

    def sharding(self, tensor: object) -> TensorSharding | None:
        """Placement of a tensor over the ranks; None where it is not known."""
        spec = spec_of_dtensor(tensor)
        if spec is None:
            return self._replicas.get(tensor) or self._gradients.get(tensor)
        if spec not in self._shardings:
            mesh = self._mesh(spec.mesh)
            self._shardings[spec] = (
                None
                if mesh is None
                else TensorSharding(tuple(spec.shape), tuple(map(_placement, spec.placements)), mesh)
            )
        return self._shardings[spec]

    def note(
        self, graph_id: int, name: str, io: str, tensors: Sequence[Any], iteration: int, mesh: Mesh | None = None
    ) -> list[TensorSharding | None]:
        """Operands of an operator, and how they lie.

        mesh   of ranks in which they are equal, where their shardings say nothing
        """
        shardings: list[TensorSharding | None] = []
        for slot, tensor in enumerate(tensors):
            sharding = self.sharding(tensor)
            if sharding is None and mesh is not None:
                sharding = _replicated(tensor, mesh)
            if sharding is not None or (graph_id, name, io, slot) in self._latest:
                self.note_operand(Operand(graph_id, name, io, slot, iteration, sharding))
            shardings.append(sharding)
        return shardings

    def note_operand(self, operand: Operand) -> None:
        """One operand; that nothing is known of it is news only where something was."""
        operand_key = operand.graph_id, operand.name, operand.io, operand.slot
        if self._latest.get(operand_key) != operand.sharding and len(self._operands) < _MAX_OPERANDS:
            self._latest[operand_key] = operand.sharding
            self._operands.append(operand)
            self._is_changed = True

    def note_message(self, operand: MessageOperand) -> None:
        """A tensor that was sent or has arrived. The next iteration mostly sends the same."""
        operand_key = operand.graph_id, operand.name, operand.io, operand.slot
        latest = self._messages.get(operand_key)
        is_same = latest is not None and replace(latest, iteration=operand.iteration) == operand
        if not is_same and len(self._all_messages) < _MAX_OPERANDS:
            self._messages[operand_key] = operand
            self._all_messages.append(operand)
            self._is_changed = True

    def note_compiled(self, fx_graph: FxGraph, arguments: Mapping[fx.Node, TensorSharding]) -> None:
        """A graph was compiled: its collectives, and what reads those of its arguments whose shardings are known.

        arguments   shardings by placeholder; of what is cut the graph itself sees the part of this process
        """
        if not self.is_on:
            return
        graph_id = fx_graph.graph.graph_id
        for call, node in fx_graph.nodes.items():
            mesh = self.note_collective(call.target, call.args)
            for slot, value in enumerate(node.outputs if mesh is not None else ()):
                assert mesh is not None
                sharding = TensorSharding(tuple(value.type.shape), (Placement(REPLICATE),), mesh)
                self.note_operand(Operand(graph_id, node.full_name, OUTPUT, slot, 0, sharding))
        known: dict[int, TensorSharding] = {}
        for placeholder, sharding in arguments.items():
            value_or_none = fx_graph.values.get((placeholder, ()))
            if value_or_none is not None:
                known[value_or_none.id] = sharding
                if value_or_none.kind != SAVED:  # which have no file of their own
                    self.note_operand(Operand(graph_id, value_or_none.name, OUTPUT, 0, 0, sharding))
        for node in fx_graph.graph.nodes:
            for slot, value in enumerate(node.inputs):
                if value.id in known:
                    self.note_operand(Operand(graph_id, node.full_name, INPUT, slot, 0, known[value.id]))
            for output, slot in node.definition.aliases.items():
                if node.inputs[slot].id in known:  # what was written in place is the argument still
                    known[node.outputs[output].id] = sharding = known[node.inputs[slot].id]
                    self.note_operand(Operand(graph_id, node.full_name, OUTPUT, output, 0, sharding))
        self.save()

    # -- the file ---------------------------------------------------------------------------------

    def end_iteration(self) -> None:
        """Gradients are computed anew, and what is known is saved."""
        self._gradients.clear()
        self.save()

    def save(self) -> None:
        """What is known goes to the session, where it is more than the last time."""
        session = self._session()
        if session is None or not self._is_changed or not self.is_on:
            return
        self._is_changed = False
        session.keep_sharding(
            RankSharding(
                torch.distributed.get_rank(),
                torch.distributed.get_world_size(),
                os.uname().nodename,
                tuple(self._groups),
                tuple(filter(None, self._meshes.values())),
                tuple(self._operands),
                tuple(self._all_messages),
            )
        )

    # -- parts ------------------------------------------------------------------------------------

    def _note_replicas(self, model: torch.nn.parallel.DistributedDataParallel) -> None:
        if model in self._models:
            return
        self._models.add(model)
        mesh = self._group_mesh(model.process_group, "replicas")
        ignored = set(model.parameters_to_ignore)
        for name, parameter in model.module.named_parameters():
            if mesh is not None and name not in ignored and spec_of_dtensor(parameter) is None:
                self._replicas.set(parameter, _replicated(parameter, mesh))

    def _note_gathered(self, part: Any) -> None:
        """Parameters of a module of FSDP2 that were gathered before; each is the same tensor in all steps.

        Source: PyTorch, `FSDPParam`, which keeps the gathered parameter, whose memory it frees in between.
        """
        state = part._get_fsdp_state()
        groups = getattr(state, "_fsdp_param_groups", None)  # the name of several, in later versions
        for group in (state._fsdp_param_group,) if groups is None else groups:
            for each in getattr(group, "fsdp_params", ()):
                gathered, info = getattr(each, "_unsharded_param", None), each.mesh_info
                if gathered is None or getattr(info, "is_spmd_mesh", False) or spec_of_dtensor(gathered) is not None:
                    continue
                mesh = self._mesh(info.mesh)
                if mesh is not None:
                    everywhere = (Placement(REPLICATE),) * len(mesh.sizes)
                    self._replicas.set(gathered, TensorSharding(tuple(gathered.shape), everywhere, mesh))

    def _group_mesh(self, group: torch.distributed.ProcessGroup, name: str) -> Mesh | None:
        """The ranks of a process group in one row; None where this process is not in it."""
        self._note_group(group)
        ranks = tuple(torch.distributed.get_process_group_ranks(group))
        key = name, ranks
        if key not in self._meshes:
            own = torch.distributed.get_rank()
            is_member = own in ranks
            self._meshes[key] = Mesh((name,), (len(ranks),), ranks, (ranks.index(own),)) if is_member else None
        return self._meshes[key]

    def _note_group(self, group: torch.distributed.ProcessGroup) -> None:
        found = Group(str(group.group_name), tuple(torch.distributed.get_process_group_ranks(group)))
        if found not in self._groups:
            self._groups[found] = None
            self._is_changed = True

    def _mesh(self, device_mesh: DeviceMesh) -> Mesh | None:
        """None for a mesh that this process is not in: it holds nothing of its tensors."""
        if device_mesh not in self._meshes:
            coordinates = device_mesh.get_coordinate()
            with _disable_current_modes():
                ranks = tuple(int(rank) for rank in device_mesh.mesh.flatten().tolist())
                sizes = tuple(int(size) for size in device_mesh.mesh.shape)
            names = device_mesh.mesh_dim_names or ("",) * len(sizes)
            for group in device_mesh.get_all_groups() if coordinates is not None else ():
                self._note_group(group)
            self._meshes[device_mesh] = (
                None if coordinates is None else Mesh(tuple(map(str, names)), sizes, ranks, tuple(coordinates))
            )
        return self._meshes[device_mesh]


def sharding_book(session: GraphSession) -> ShardingBook:
    """The book of a session, which all that its process dumps shares."""
    return session.shared(ShardingBook)


def spec_of_dtensor(tensor: object) -> DTensorSpec | None:
    """What a DTensor says of itself; None for any other tensor."""
    return getattr(tensor, "_spec", None) if hasattr(tensor, "_local_tensor") else None


def _wrappers() -> list[torch.nn.parallel.DistributedDataParallel]:
    """All in this process. It takes long."""
    kind = torch.nn.parallel.DistributedDataParallel
    return [each for each in instances_of(kind) if hasattr(each, "parameters_to_ignore")]  # which its constructor sets


def _fsdp_classes() -> list[type[Any]]:
    """What FSDP2 makes classes of modules of; none where the script has not imported it."""
    homes = map(sys.modules.get, ("torch.distributed.fsdp", "torch.distributed._composable.fsdp"))
    return list(dict.fromkeys(kind for home in homes if (kind := getattr(home, "FSDPModule", None)) is not None))


def _placement(placement: Any) -> Placement:
    # In this order: a strided shard is a shard in some versions of PyTorch.
    split = getattr(placement, "split_factor", None)
    if split is not None:
        return Placement(STRIDED, int(placement.dim), split=int(split))
    if placement.is_shard():
        return Placement(SHARD, int(placement.dim))
    if placement.is_replicate():
        return Placement(REPLICATE)
    operation = str(getattr(placement, "reduce_op", "other")).lower()
    return Placement(PARTIAL, operation=operation if _OPERATION.fullmatch(operation) else "other")


def _replicated(tensor: torch.Tensor, mesh: Mesh) -> TensorSharding:
    return TensorSharding(tuple(tensor.shape), (Placement(REPLICATE),), mesh)


def process_group(argument: object) -> torch.distributed.ProcessGroup | None:
    """The process group that an argument of a collective is, or names."""
    if isinstance(argument, torch.distributed.ProcessGroup):
        return argument
    try:
        if isinstance(argument, str):
            resolve: Callable[[str], torch.distributed.ProcessGroup] = vars(torch.distributed.distributed_c10d)[
                "_resolve_process_group"
            ]
            return resolve(argument)
        if isinstance(argument, torch.ScriptObject):
            return torch.distributed.ProcessGroup.unbox(argument)
    except (RuntimeError, TypeError, ValueError, KeyError, LookupError):
        pass
    return None
