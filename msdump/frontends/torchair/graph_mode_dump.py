"""The dump of compiled graphs: `dump_config` of a CompilerConfig, carried out by the engine of acl.json."""

from __future__ import annotations

import json
import logging
import os
import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msdump import measuring, sessions
from msdump.acl_engine import AclDump
from msdump.config.acl import load_acl_config, plan_acl, plan_options
from msdump.config.environment import AclEnvironment, exception_folder
from msdump.config.json_file import JsonFile
from msdump.config.plan import Plan
from msdump.config.selection import OperatorList
from msdump.config.selectors import FullNameSelector
from msdump.dumpers.writer_pool import WriterPool
from msdump.errors import ConfigError, WriteError, did_you_mean
from msdump.formats.atomic import make_dirs, write_file
from msdump.formats.paths.torchair import dump_options_path, rank_dir
from msdump.frontends.torchair.configs.compiler_config import CompilerConfig
from msdump.frontends.torchair.ge.dumped_run import DumpedGraph
from msdump.frontends.torchair.ge.graph import CONST, DATA, NET_OUTPUT, GeGraph
from msdump.frontends.torchair.ranks import process_rank
from msdump.frontends.torchair.scope import is_marked
from msdump.report import MODELS, Report
from msdump.sessions import Session

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


class _AclSession(Session):
    """A dump of compiled graphs.   acl: what carries it out; None as long as nothing of it is to be dumped"""

    has_threads = True

    def __init__(self) -> None:
        super().__init__()
        self.acl: AclDump | None = None

    @abstractmethod
    def observe(self, graph: GeGraph) -> AclDump | None:
        """A graph is compiled; None when nothing of it is dumped.

        Raises: AclConfigError for options that ACL refuses.
        """

    @property
    def is_used(self) -> bool:
        return self.acl is not None

    @property
    def pools(self) -> tuple[WriterPool, ...]:
        return () if self.acl is None else (self.acl.pool,)

    def report(self) -> Report:
        return Report(self.folder, MODELS) if self.acl is None else self.acl.report()

    def _finish(self) -> None:
        if self.acl is not None:
            self.acl.close()


class GraphModeDump(_AclSession):
    """The dump of one process: what its options ask for, and all graphs that were compiled with them.

    The list of models grows with every graph, as TorchAir hands it to ACL anew. A layer need not be in every graph: of
    each, those that it has are asked for, and what no graph had is said in the end.
    """

    def __init__(self, options: DumpOptions) -> None:
        super().__init__()
        self.options = options
        self._lists: list[OperatorList] = []
        self._shown: list[dict[str, Any]] = []
        self._names: set[str] = set()
        self._has_marks = False
        self._has_warned = False

    @property
    def folder(self) -> str:
        return str(self.options.folder)

    def observe(self, graph: GeGraph) -> AclDump | None:
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
        plan = self._plan()
        if self.acl is None:
            self.acl = AclDump(plan, self.options.folder)
            self.note_use()
        self.acl.plan = plan
        is_listed = any(each.model_name == graph.name for each in self._lists)
        return self.acl if is_listed else None

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
        """Of all graphs so far; a file shows the options as TorchAir hands them to ACL."""
        path = dump_options_path(measuring.redirected(Path.cwd()), *process_rank(), os.getpid())
        keys = dict(self.options.keys)
        content = {"dump": {**keys, "dump_path": str(self.options.folder), "dump_list": self._shown}}
        text = json.dumps(content, indent=4).encode()
        try:
            make_dirs(path.parent)
            write_file(path, [text], 0o600, replace=True)
        except WriteError as error:
            if not self._has_warned:
                self._has_warned = True
                log.warning("The options of the dump cannot be shown in a file; the dump goes on. %s", error)
        steps, source = keys.get("dump_step", ""), JsonFile(path, text, content)
        return plan_options(self.options.folder, keys["dump_mode"], keys["dump_data"], steps, self._lists, source)


class FileDump(_AclSession):
    """A dump that a file asks for, `dump_config.dump_config_path`: what the file says, and nothing else."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path
        config = load_acl_config(path)
        for warning in config.warnings:
            log.warning("%s", warning)
        plan = plan_acl(config)
        if plan is not None:
            folder = plan.where.path
            if plan.trigger.exception:
                folder = exception_folder(AclEnvironment.from_os(), folder, Path.cwd())
            self.acl = AclDump(plan, measuring.redirected(folder))

    @property
    def folder(self) -> str:
        return self.path if self.acl is None else str(self.acl.root)

    def observe(self, graph: GeGraph) -> AclDump | None:
        return self.acl


_lock = threading.Lock()


def dumped(graph: GeGraph, config: CompilerConfig) -> Run | None:
    """What runs the graph and dumps it; None when `dump_config` asks for nothing.

    Raises: ConfigError for options that ACL refuses, or that differ from those of an earlier backend.
    """
    dump = _dump_of(config)
    if dump is None:
        return None
    with _lock:
        found = dump.observe(graph)
        originals: Mapping[str, tuple[str, ...]] = _originals(graph)
        observers = () if found is None else found.observe_model(graph.graph_id, [graph.name], originals)
    if found is None or not observers:
        return None
    return DumpedGraph(graph, observers, found.count_skipped)


def _dump_of(config: CompilerConfig) -> _AclSession | None:
    options = config.dump_config
    path = options.dump_config_path.value
    if options.enable_dump:
        if path is not None:
            log.warning(
                "config.dump_config.dump_config_path: expected it alone, got enable_dump as well. The file %s is not "
                "read; the other options hold.",
                path,
            )
        return _share(_options(config))
    if path is None:
        return None
    with _lock:
        same = [dump for dump in sessions.all_of(FileDump) if dump.path == path]
        return same[0] if same else sessions.begin(FileDump(path))


def _share(options: DumpOptions) -> GraphModeDump:
    with _lock:
        for dump in sessions.all_of(GraphModeDump):
            if dump.options != options:
                raise dump.options.refusal(options)
            return dump
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
    folder = rank_dir(measuring.redirected(Path(options.dump_path.value).resolve()), *process_rank())
    return DumpOptions(tuple(keys.items()), tuple((options.dump_layer.value or "").replace('"', "").split()), folder)


def _originals(graph: GeGraph) -> dict[str, tuple[str, ...]]:
    """Name of an FX node -> the GE operators that stand for it."""
    found: dict[str, tuple[str, ...]] = {}
    for op in graph.ops:
        if op.fx_node is not None and op.type not in (DATA, CONST, NET_OUTPUT):
            found[op.fx_node.name] = (*found.get(op.fx_node.name, ()), op.name)
    return found
