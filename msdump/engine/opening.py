"""From a configuration to sessions: the one that graphs of MindSpore and PyTorch share, and those of `with` blocks.

A block's configuration counts before that of the environment, and the innermost block's before that of others.
"""

from __future__ import annotations

import contextlib
import logging
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Union

from msdump.errors import DumpError
from msdump.process import sessions

if TYPE_CHECKING:
    from msdump.config.json_file import JsonFile
    from msdump.config.plan import Plan
    from msdump.engine.graphs import GraphSession
    from msdump.engine.model_session import AclSession
    from msdump.process.report import Report

log = logging.getLogger("msdump")

_MakePlan = Callable[[Mapping[str, str], Union["JsonFile", None]], Union["Plan", None]]
Config = Union[str, "os.PathLike[str]", Mapping[str, Any], "Plan"]


# -- graphs of MindSpore and PyTorch ---------------------------------------------------------------


def open_mindspore(
    device_target: str, device_id: int, is_pynative: bool = False, jit_level: str = ""
) -> GraphSession | None:
    """The session for MindSpore Dump; None when Dump is off.

    Configuration and environment are read once, at the first call; a call that raises decides nothing.
    Raises: ConfigError before anything is written; WriteError when the folder cannot be made.
    """

    def plan(environ: Mapping[str, str], file: JsonFile | None) -> Plan | None:
        from msdump.config.environment import Environment
        from msdump.config.mindspore import plan_mindspore
        from msdump.graph.primitive import provider_choice

        environment = Environment.from_os(environ)
        plan = plan_mindspore(environment, device_target, device_id, is_pynative, jit_level, file)
        if plan is None or provider_choice == "auto":
            return plan
        return replace(plan, how=replace(plan.how, kernels=provider_choice))

    return _open_once(plan)


def open_torch(
    rank_id: int | None, device_id: int, categories: tuple[str, ...], is_compiled_only: bool = False
) -> GraphSession | None:
    """The session for graphs of PyTorch; None when Dump is off.

    rank_id           None: what the environment says
    categories        columns of statistic.csv when the configuration chooses none
    is_compiled_only  as of `How`; what opens the session decides
    Raises: as `open_mindspore`.
    """

    def plan_torch(environ: Mapping[str, str], file: JsonFile | None) -> Plan | None:
        from msdump.config.environment import Environment
        from msdump.config.mindspore import plan_mindspore

        environment = Environment.from_os(environ)
        chosen = environment.device_id if environment.device_id is not None else device_id
        plan = plan_mindspore(environment, "CPU", chosen, file=file)
        if plan is None:
            return None
        return replace(
            plan,
            where=plan.where if rank_id is None else replace(plan.where, rank_id=rank_id),
            saved=replace(plan.saved, columns=plan.saved.columns or categories),
            how=replace(plan.how, has_graph_files=True, is_compiled_only=is_compiled_only),
        )

    return _open_once(plan_torch)


def is_decided() -> bool:
    """Whether the configuration was read already, so that `current` is the answer."""
    return _graphs[-1].is_decided


def current() -> GraphSession | None:
    """The session for graphs that run now, if one was compiled with Dump on."""
    session = _graphs[-1].session
    return session if session is not None and session.may_dump() else None


def is_current(session: GraphSession | None) -> bool:
    """Whether a graph that was compiled for a session, or for none, may run as it is."""
    scope = _graphs[-1]
    return (scope.is_decided and session is scope.session) or (session is not None and session.is_foreign)


def _open_once(make_plan: _MakePlan) -> GraphSession | None:
    """Start what the plan selects, once, whichever thread compiles first."""
    scope = _graphs[-1]
    if not scope.is_decided:
        with sessions.lock:
            if not scope.is_decided:
                environ = dict(_environment(scope.file))
                plan = make_plan(environ, scope.file)
                if plan is not None and plan.when.is_device_enabled:
                    _reload(scope.start(plan), environ, make_plan)
                scope.is_decided = True
                if plan is None and not sessions.is_anything_configured():
                    sessions.note_no_dump()
    return current()


def _reload(session: GraphSession, environ: Mapping[str, str], make_plan: _MakePlan) -> None:
    """Read the file again when it changes; what MindSpore checks strictly it reads once."""
    from msdump.config.environment import Environment
    from msdump.config.json_file import read_json_file
    from msdump.engine.reloading import Reloader

    source = session.plan.source
    path = source.given
    # A flight recorder keeps one plan from the beginning to the end.
    if path is not None and session.recorder is None and not Environment.from_os(environ).is_strict:
        session.reload_with(Reloader(source, lambda: make_plan(environ, read_json_file(path))))


def _environment(file: JsonFile | None) -> Mapping[str, str]:
    from msdump.config.environment import DUMP_CONFIG

    return os.environ if file is None else {**os.environ, DUMP_CONFIG: str(file.path)}


# -- with blocks -----------------------------------------------------------------------------------


class _Block(ABC):
    """What a configuration does between the beginning and the end of a `with` block."""

    session: sessions.Session | None

    @property
    @abstractmethod
    def path(self) -> Path | None:
        """Folder of the dump; None while nothing is dumped."""

    @abstractmethod
    def begin(self) -> None:
        """Put it before all others."""

    @abstractmethod
    def end(self) -> sessions.Session | None:
        """Take it away; the session that is to be closed."""


class _Graphs(_Block):
    """The session of graphs, which begins when the first one is compiled.

    file   the configuration; None: what the environment says
    plan   in place of both
    """

    def __init__(self, file: JsonFile | None = None, plan: Plan | None = None) -> None:
        self.file = file
        self.session: GraphSession | None = None
        self.is_decided = False
        self._plan = plan

    @property
    def path(self) -> Path | None:
        return None if self.session is None else Path(self.session.folder)

    def start(self, plan: Plan) -> GraphSession:
        """Raises: ConfigError; WriteError."""
        from msdump.engine.graphs import start

        self.session = sessions.begin(start(plan))
        return self.session

    def begin(self) -> None:
        self.session, self.is_decided = None, False
        if self._plan is not None:
            self.start(self._plan)
            self.is_decided = True
        _graphs.append(self)
        _tell_compilers()

    def end(self) -> sessions.Session | None:
        _graphs.remove(self)
        _tell_compilers()
        return self.session


class _Models(_Block):
    """The session of models that are loaded; None is a plan that dumps nothing."""

    def __init__(self, plan: Plan | None) -> None:
        self._plan = plan
        self.session: AclSession | None = None

    @property
    def session_for_model(self) -> AclSession | None:
        return self.session

    @property
    def path(self) -> Path | None:
        return None if self.session is None else self.session.root

    def begin(self) -> None:
        from msdump.engine.model_session import open_session

        self.session = None if self._plan is None else open_session(self._plan)
        _models.append(self)

    def end(self) -> sessions.Session | None:
        _models.remove(self)
        return self.session


class _ModelsWhenLoaded(_Models):
    """As `_Models`, from the first model on that is loaded: before, there is no folder."""

    def __init__(self, file: JsonFile) -> None:
        super().__init__(None)
        self._file = file

    @property
    def session_for_model(self) -> AclSession | None:
        if self.session is None:
            from msdump.engine.model_session import open_session, plan_of

            plan = plan_of(self._file)
            self.session = None if plan is None else open_session(plan)
        return self.session

    def begin(self) -> None:
        self.session = None
        _models.append(self)


class _Default(_Graphs):
    """Where nothing is configured: graphs, and models, into one folder."""

    def __init__(self) -> None:
        super().__init__()
        self._beside: _ModelsWhenLoaded | None = None

    @property
    def path(self) -> Path | None:
        return super().path or (None if self._beside is None else self._beside.path)

    def begin(self) -> None:
        from msdump.config.default import models_config
        from msdump.config.json_file import mapping_as_file
        from msdump.config.sections import COMMON

        config = default_config()
        self.file = mapping_as_file(config, "dump.json")
        self._beside = _ModelsWhenLoaded(mapping_as_file(models_config(config[COMMON]["path"]), "acl.json"))
        super().begin()
        self._beside.begin()

    def end(self) -> sessions.Session | None:
        models, graphs = None if self._beside is None else self._beside.end(), super().end()
        if graphs is None or models is None:
            return graphs or models
        with contextlib.suppress(DumpError):  # the report of the session says it
            models.close()
        return graphs


_graphs: list[_Graphs] = [_Graphs()]  # the first one is the environment's
_models: list[_Models] = []
_models_by_default: _ModelsWhenLoaded | None = None
_compilers: list[Callable[[], object]] = []


def models_in_block() -> tuple[AclSession | None] | None:
    """The session that a model takes which is loaded now, in a `with` block; None outside of blocks."""
    return (_models[-1].session_for_model,) if _models else None


def dump_models_by_default(config: Mapping[str, Any] | None) -> None:
    """What models are dumped by that a script loads without a dump of its own; None: they are not."""
    global _models_by_default
    from msdump.config.json_file import mapping_as_file

    _models_by_default = None if config is None else _ModelsWhenLoaded(mapping_as_file(config, "acl.json"))


def models_by_default() -> AclSession | None:
    """The session of `dump_models_by_default`."""
    return None if _models_by_default is None else _models_by_default.session_for_model


def call_when_sessions_change(function: Callable[[], object]) -> None:
    """Call it whenever graphs are to be compiled anew, as another session watches them."""
    if function not in _compilers:
        _compilers.append(function)


def _tell_compilers() -> None:
    for function in _compilers:
        function()


class DumpBlock:
    """A dump from the beginning of a `with` block to its end, of everything that begins inside of it.

    One that is not complete does not end the program: the log says it at the end of the block, `report().error` and
    `close()` tell it to the code that asks, and `msdump run` ends with 4.
    """

    def __init__(self, block: _Block) -> None:
        self._block = block
        self._session: sessions.Session | None = None
        self._incomplete: DumpError | None = None

    @property
    def path(self) -> Path | None:
        """Folder that the configuration names; None when it asks for nothing, or no graph was compiled so far."""
        return self._block.path

    @property
    def session(self) -> GraphSession | None:
        """The session of graphs; None before one was compiled, and for models."""
        session = self._session or self._block.session
        return session if isinstance(self._block, _Graphs) else None  # type: ignore[return-value]

    def __enter__(self) -> DumpBlock:
        self._block.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session = self._block.end()
        with contextlib.suppress(DumpError):
            self.close()
        if self._incomplete is not None:
            log.error("%s", self._incomplete)

    def close(self) -> None:
        """End the dump, where the block has not yet. What runs later is not dumped.

        Raises: DumpError when the dump is not complete, at each call.
        """
        session = self._session or self._block.session
        if session is not None:
            try:
                session.close()
            except DumpError as incomplete:
                self._incomplete = incomplete
        if self._incomplete is not None:
            raise DumpError(str(self._incomplete)) from self._incomplete

    def report(self) -> Report | None:
        """Counts up to now; None when the configuration asks for nothing, or no graph was compiled."""
        session = self._session or self._block.session
        return None if session is None else session.report()


def is_configured() -> bool:
    """Whether the environment, a block around, or a session that has begun, says what is dumped of graphs."""
    from msdump.config.environment import DUMP_CONFIG

    return len(_graphs) > 1 or _graphs[-1].session is not None or bool(os.environ.get(DUMP_CONFIG))


def is_anything_said() -> bool:
    """As `is_configured`, or the variable is there and empty, which is to say that nothing is dumped."""
    from msdump.config.environment import DUMP_CONFIG

    return is_configured() or DUMP_CONFIG in os.environ


def default_config() -> dict[str, Any]:
    """Statistics of everything in every step, into a new folder `msdump_dump`.   Raises: FolderError"""
    from msdump.config.default import FOLDER, graphs_config
    from msdump.dumpers.limits import check_folder
    from msdump.process.default_folder import claim_folder

    folder = Path(FOLDER).absolute()
    check_folder(folder)
    folder = claim_folder(folder)
    log.warning("Statistics of every step go to %s. What is wrong in them: msdump nan %s", folder, folder.name)
    return graphs_config(folder, budget=default_budget())


def default_budget() -> str:
    """Of the disk, for `graphs_config`; "" where the environment says it."""
    from msdump.config.default import BUDGET as DEFAULT
    from msdump.config.environment import BUDGET

    return "" if os.environ.get(BUDGET, "").strip() else DEFAULT


def dump(config: Config | None = None) -> DumpBlock:
    """Dump what a configuration asks for, with every front end: `with msdump.dump("dump.json") as d: ...`.

    config   path of a file, or a mapping that holds what such a file would: a MindSpore Dump JSON dumps graphs of
             MindSpore and of torch.compile with the backend msdump, an acl.json dumps models that are loaded inside of
             the block; or a plan of either. None: statistics of all of these, of every step, into a new folder
             `msdump_dump`
    Edges:   graphs are compiled anew inside, and once more behind the block.
    Raises:  ConfigError; FolderError when no dump can begin in the folder. What depends on the device is raised when
             the first graph is compiled.
    """
    from msdump.config.acl_rules import DUMP
    from msdump.config.json_file import mapping_as_file, read_json_file
    from msdump.config.mindspore import parse_mindspore_config
    from msdump.config.plan import Plan
    from msdump.config.sections import COMMON
    from msdump.dumpers.limits import check_folder

    if config is None:
        return DumpBlock(_Default())
    if isinstance(config, Plan):
        return DumpBlock(_Graphs(plan=config) if COMMON in (config.source.value or ()) else _Models(config))
    file = mapping_as_file(config, "dump.json") if isinstance(config, Mapping) else read_json_file(config)
    if isinstance(file.value, dict) and DUMP in file.value:
        return dump_models(config if isinstance(config, Mapping) else file)
    check_folder(Path(parse_mindspore_config(file).common.path))
    return DumpBlock(_Graphs(file))


def dump_models(config: str | os.PathLike[str] | Mapping[str, Any] | JsonFile) -> DumpBlock:
    """As `dump`, for what can be an acl.json only.   Raises: AclConfigError."""
    from msdump.engine.model_session import plan_of

    return DumpBlock(_Models(plan_of(config)))


def _forget() -> None:
    _graphs[:] = [_Graphs()]
    _models.clear()
    dump_models_by_default(None)


sessions.call_at_reset(_forget)
