"""Every dumper keeps the contract of dumpers."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from msdump.config.acl import load_acl_config, plan_acl, plan_acl_exception
from msdump.config.environment import NORM
from msdump.config.plan import Plan
from msdump.config.ranges import parse_ranges
from msdump.config.selection import Choice
from msdump.dumpers.capture import AclWatchedGraph, Clock, graph_operators
from msdump.dumpers.delivery import Delivery
from msdump.dumpers.exception import AclExceptionDumper, ExceptionDumper
from msdump.dumpers.immediate import ImmediateDumper
from msdump.dumpers.memory_watcher import Watcher
from msdump.dumpers.overflow import OverflowDumper
from msdump.dumpers.streaming import AclOperatorDumper, AsyncDumper
from msdump.dumpers.sync import SyncDumper
from msdump.dumpers.tally import Tally
from msdump.formats.paths.sync import SyncPaths
from msdump.graph.graph import Graph
from msdump.graph.run import Observer
from msdump.tensors.records import OpEvent, TensorRecord
from tests.contracts.dumper_contract import FAILING, INPUTS, OUTPUTS, OVERFLOWING, DumperContract, Place
from tests.dumpers.memory_writer import MemoryWriter
from tests.plans import plain_plan

PARAMETERS = [("w", "output", 0), ("x", "output", 0)]


class TestSync(DumperContract):
    places: Sequence[Place] = (
        *INPUTS,
        *OUTPUTS,
        *PARAMETERS,
    )

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        plan = plain_plan(engine="sync", iterations=parse_ranges(iterations))
        return SyncDumper(plan, SyncPaths(self.folder, 0, "Net"), [writer], MemoryWriter(), tally)


class TestAsync(DumperContract):
    places: Sequence[Place] = (
        *INPUTS,
        *OUTPUTS,
        *PARAMETERS,
    )

    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        return AsyncDumper(plain_plan(iterations=parse_ranges(iterations)), [writer], tally, 1 << 20)

    def settle(self, dumper: Observer) -> None:
        assert isinstance(dumper, AsyncDumper)
        assert dumper.pool.drain(60)


class TestImmediate(DumperContract):
    is_gated = False
    has_own_stamps = False

    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        return ImmediateDumper([writer], tally)


class TestOverflow(DumperContract):
    step = OVERFLOWING
    places: Sequence[Place] = (
        ("grow", "input", 0),
        ("grow", "output", 0),
    )

    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        plan = plain_plan(op_debug_mode=3, iterations=parse_ranges(iterations))
        return OverflowDumper(plan, [writer], MemoryWriter(), tally)


class TestException(DumperContract):
    step = FAILING
    places: Sequence[Place] = (("check", "input", 0),)
    is_gated = False

    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        return ExceptionDumper(plain_plan(op_debug_mode=4, iterations=parse_ranges(iterations)), [writer], tally)


class TestAclException(TestException):
    """Its file has a form of its own, so its records are noted on their way."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.folder = tmp_path

    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        dumper = AclExceptionDumper(plan_acl_exception(NORM), self.folder, 0, tally)
        save = dumper._save

        def noting(records: Sequence[TensorRecord], event: OpEvent, error: BaseException) -> str:
            writer.write(records)
            return save(records, event, error)

        dumper._save = noting  # type: ignore[method-assign]
        return dumper


class AclContract(DumperContract):
    """Several dumpers share what delivers; the one that made it closes it."""

    places: Sequence[Place] = (
        *INPUTS,
        *OUTPUTS,
        ("x", "input", 0),
        ("x", "output", 0),
    )
    gate_ticks = 1  # whether a run is dumped is asked of folders
    keys: Mapping[str, Any] = MappingProxyType({})

    @pytest.fixture(autouse=True)
    def _plan(self, tmp_path: Path) -> None:
        self.folder = tmp_path
        self.deliveries: dict[Observer, tuple[Delivery, MemoryWriter]] = {}

    def acl_plan(self) -> Plan:
        section = {"dump_path": str(self.folder), "dump_mode": "all", "dump_list": [{}], **self.keys}
        (self.folder / "acl.json").write_text(json.dumps({"dump": section}))
        plan = plan_acl(load_acl_config(self.folder / "acl.json"))
        assert plan is not None
        return plan

    def watch(self, plan: Plan, graph: Graph) -> AclWatchedGraph:
        return AclWatchedGraph(graph, plan, [Choice()] * len(graph_operators(graph, {})))

    def open_dumper(self, writer: MemoryWriter, tally: Tally, iterations: str) -> Observer:
        plan, delivery = self.acl_plan(), Delivery(tally, 1 << 20)
        numbers = parse_ranges(iterations)
        watch = functools.partial(self.watch, plan)
        dumper = self.make(plan, (watch, numbers.__contains__, [writer], delivery, tally, Clock()))
        self.deliveries[dumper] = delivery, writer
        return dumper

    def make(self, plan: Plan, parts: Sequence[Any]) -> Observer:
        raise NotImplementedError

    def settle(self, dumper: Observer) -> None:
        for delivery, _ in self.deliveries.values():
            assert delivery.pool.drain(60)

    def close(self, dumper: Observer) -> None:
        dumper.close()
        delivery, writer = self.deliveries[dumper]
        delivery.close([writer])


class TestAclOperators(AclContract):
    def make(self, plan: Plan, parts: Sequence[Any]) -> Observer:
        return AclOperatorDumper(*parts)


class TestMemoryWatcher(AclContract):
    """`double` and its file after each operator that triggers."""

    places: Sequence[Place] = (
        ("double", "output", 0),
        *((f"{name}_To_double", "output", 0) for name in ("grow", "collect", "check", "last")),
    )
    keys = MappingProxyType(
        {"dump_scene": "watcher", "dump_mode": "output", "dump_list": [{"watcher_nodes": ["double/Toy-op0"]}]}
    )

    def watch(self, plan: Plan, graph: Graph) -> AclWatchedGraph:
        operators = graph_operators(graph, {})
        return AclWatchedGraph(graph, plan, plan.which.choose(operators, ["net"]))

    def make(self, plan: Plan, parts: Sequence[Any]) -> Observer:
        return Watcher(plan.which, {}, *parts)
