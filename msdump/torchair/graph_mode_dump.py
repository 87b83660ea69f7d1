"""The dump of compiled graphs: `dump_config` of a CompilerConfig, carried out by the engine of acl.json."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump.config.acl import plan_options
from msdump.config.json_file import JsonFile
from msdump.config.plan import Plan
from msdump.config.selection import OperatorList
from msdump.config.selectors import FullNameSelector
from msdump.dumpers.limits import check_folder
from msdump.engine.model_session import AclSession, plan_of
from msdump.engine.models import AclDump
from msdump.errors import ConfigError, WriteError, did_you_mean
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.paths.torchair import dump_options_path, rank_dir
from msdump.process import dry_run, sessions
from msdump.torchair.configs.compiler_config import CompilerConfig
from msdump.torchair.ge.dumped_run import DumpedGeGraph
from msdump.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph
from msdump.torchair.ranks import process_rank
from msdump.torchair.scope import is_marked

log = logging.getLogger("msdump")

Run = Callable[[list[Any]], Any]


@dataclass(frozen=True)
class DumpOptions:
    """What the options of one backend ask for; equal ones share a dump.

    keys    of the section `dump`, without its list of models
    layers  names of `dump_layer`
    folder  of this process
    """

    keys: tuple[tuple[str, str], ...]
    layers: tuple[str, ...]
    folder: Path

    def refusal(self, other: DumpOptions) -> ConfigError:
        """Source: TorchAir, whose compiler is started once, with options that hold for the whole process."""
        mine = {**dict(self.keys), "dump_layer": " ".join(self.layers), "dump_path": str(self.folder)}
        theirs = {**dict(other.keys), "dump_layer": " ".join(other.layers), "dump_path": str(other.folder)}
        key = next(name for name in (*mine, *theirs) if mine.get(name) != theirs.get(name))
        return ConfigError(
            f"Unsupport twice initialtion with different options, new option key {key}\n"
            f"config.dump_config.{key}: expected {mine.get(key)!r}, as in the backend that came first in this process, "
            f"got {theirs.get(key)!r}. Give all backends of a process the same options."
        )


class GraphModeDump(AclSession):
    """The dump of one process: what its options ask for, and all graphs that were compiled with them.

    The list of models grows with every graph, as TorchAir hands it to ACL anew. A layer need not be in every graph: of
    each, those that it has are asked for, and what no graph had is said in the end.
    """

    def __init__(self, options: DumpOptions) -> None:
        self.options = options
        self._lists: list[OperatorList] = []
        self._shown: list[dict[str, object]] = []
        self._names: set[str] = set()
        self._has_marks = False
        self._has_warned = False
        super().__init__(self._plan(), root=options.folder)

    @property
    def is_used(self) -> bool:
        return bool(self._names)

    def observe(self, graph: GeGraph) -> AclDump | None:
        """A graph is compiled; None when nothing of it is dumped."""
        marked = [
            op.name
            for op in graph.ops
            if op.fx_node is not None and op.type not in (DATA, CONST, NET_OUTPUT) and is_marked(op.fx_node)
        ]
        self._has_marks = self._has_marks or bool(marked)
        layers = list(dict.fromkeys([*self.options.layers, *marked]))
        names = {op.name for op in graph.ops} | {op.fx_node.name for op in graph.ops if op.fx_node is not None}
        self._names |= names
        model: dict[str, Any] = {"model_name": graph.name}
        if layers:
            self._shown.append({**model, "layer": layers})
            found = [name for name in layers if name in names]
            if found:
                self._lists.append(OperatorList(graph.name, tuple(map(FullNameSelector, found))))
        elif not self._has_marks:
            self._shown.append(model)
            self._lists.append(OperatorList(graph.name))
        self.plan = self._plan()
        self._show()
        acl = self.dump()
        acl.plan = self.plan
        return acl if any(operator_list.model_name == graph.name for operator_list in self._lists) else None

    def _finish(self) -> None:
        if self._names:
            for name in self.options.layers:
                if name not in self._names:
                    near = did_you_mean(name, sorted(self._names))
                    log.warning(
                        "%s", f"config.dump_config.dump_layer: no graph has an operator {name}. {near}".rstrip()
                    )
        super()._finish()

    def _plan(self) -> Plan:
        """Of all graphs so far."""
        keys, folder = dict(self.options.keys), self.options.folder
        path = dump_options_path(dry_run.redirected(Path.cwd()), *process_rank(), os.getpid())
        content = {"dump": {**keys, "dump_path": str(folder), "dump_list": self._shown}}
        source = JsonFile(path, json.dumps(content, indent=4).encode(), content)
        return plan_options(
            folder, keys["dump_mode"], keys["dump_data"], keys.get("dump_step", ""), self._lists, source
        )

    def _show(self) -> None:
        """Write a file of the options as TorchAir hands them to ACL."""
        try:
            make_dirs(self.plan.source.path.parent)
            write_file(self.plan.source.path, [self.plan.source.text], 0o600, replace=True)
        except WriteError as error:
            if not self._has_warned:
                self._has_warned = True
                log.warning("The options of the dump cannot be written to a file; the dump continues. %s", error)


class ConfigFileDump(AclSession):
    """A dump that a file asks for, `dump_config.dump_config_path`: what the file says, and nothing else."""

    def __init__(self, path: str, plan: Plan) -> None:
        super().__init__(plan)
        self.path = path

    @property
    def is_used(self) -> bool:
        return True

    def observe(self, graph: GeGraph) -> ConfigFileDump:
        return self


# Files without any request, which are logged once.
_idle_files: set[str] = set()
sessions.call_at_reset(_idle_files.clear)

_lock = threading.Lock()


def dumped(graph: GeGraph, config: CompilerConfig) -> Run | None:
    """What runs the graph and dumps it; None when `dump_config` asks for nothing.

    Raises: ConfigError for options that ACL refuses, or that differ from those of an earlier backend.
    """
    dump = _dump_of(config)
    if dump is None or dump.has_ended:
        return None
    with _lock:
        found = dump.observe(graph)
        originals: Mapping[str, tuple[str, ...]] = _originals(graph)
        observers = () if found is None else found.observe_model(graph.graph_id, [graph.name], originals)
    if found is None or not observers:
        return None
    return DumpedGeGraph(graph, observers, found.count_skipped)


def _dump_of(config: CompilerConfig) -> GraphModeDump | ConfigFileDump | None:
    options = config.dump_config
    path = options.dump_config_path.value
    if options.enable_dump:
        if path is not None:
            log.warning(
                "config.dump_config.dump_config_path: expected it alone, got enable_dump as well. The file %s is not "
                "read; the other options apply.",
                path,
            )
        return _share(_options(config))
    if path is None:
        return None
    with _lock:
        same = [dump for dump in sessions.all_of(ConfigFileDump) if dump.path == path]
        if same or path in _idle_files:
            return same[0] if same else None
        plan = plan_of(path)
        if plan is None:
            _idle_files.add(path)
            return None
        dump = sessions.begin(ConfigFileDump(path, plan))
        dump.follow_file()
        return dump


def _share(options: DumpOptions) -> GraphModeDump:
    with _lock:
        for dump in sessions.all_of(GraphModeDump):
            if dump.options != options:
                raise dump.options.refusal(options)
            return dump
        check_folder(options.folder)
        make_dirs(options.folder)
        return sessions.begin(GraphModeDump(options))


def _options(config: CompilerConfig) -> DumpOptions:
    options = config.dump_config
    keys = {
        "dump_mode": options.dump_mode.value,
        "dump_data": options.dump_data.value,
        "quant_dumpable": options.quant_dumpable.value,
    }
    steps = options.dump_step.value
    if steps:
        # A bar at the end is allowed here and means nothing; acl.json refuses it.
        keys["dump_step"] = steps.rstrip("|")
    folder = rank_dir(dry_run.redirected(Path(options.dump_path.value).resolve()), *process_rank())
    return DumpOptions(tuple(keys.items()), tuple((options.dump_layer.value or "").replace('"', "").split()), folder)


def _originals(graph: GeGraph) -> dict[str, tuple[str, ...]]:
    """Name of an FX node -> the GE operators that stand for it."""
    found: dict[str, tuple[str, ...]] = {}
    for op in graph.ops:
        if op.fx_node is not None and op.type not in (DATA, CONST, NET_OUTPUT):
            found[op.fx_node.name] = (*found.get(op.fx_node.name, ()), op.name)
    return found
