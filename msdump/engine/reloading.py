"""Reloader: a configuration file that is read again when it changes while the job runs, and what may change then."""

from __future__ import annotations

import contextlib
import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from msdump.config.acl_rules import DUMP, WATCHER
from msdump.config.json_file import JsonFile, stamp_of
from msdump.config.plan import OPERANDS, Plan
from msdump.config.recorder import RECORDER
from msdump.config.sampling import Sampling
from msdump.errors import ConfigError, FormatError, MsdumpError
from msdump.formats.atomic import write_file
from msdump.storage.plain import read_start


@dataclass(frozen=True)
class Change:
    """A configuration in another one's place.   kept: keys that differ and stay as they were"""

    plan: Plan
    kept: tuple[str, ...]


def change(old: Plan, new: Plan) -> Change:
    """The old plan with the iterations, operators, operands, data and triggers of the new one.

    Where the new one is for the other engine, triggers, formats and layouts stay as well: each engine has its own.
    """
    is_acl = isinstance(new.source.value, dict) and DUMP in new.source.value
    if _scene(old) != _scene(new):
        # Each scene has files, and memory of models, of its own.
        return Change(replace(old, source=new.source), ("dump_scene",))
    pairs = {
        "dump_path" if is_acl else "path": (old.where.path, new.where.path),
        "net_name": (old.where.net_name, new.where.net_name),
        "e2e_dump_settings.enable": (old.how.engine, new.how.engine),
        "sampling": (_sampling(old), _sampling(new)),
        "disk_budget": (old.where.budget_bytes, new.where.budget_bytes),
        "initial_iteration": (old.when.initial_iteration, new.when.initial_iteration),
        RECORDER: (old.recorder is None, new.recorder is None),
        "support_device": (old.when.is_device_enabled, new.when.is_device_enabled),
    }
    kept = tuple(key for key, (before, after) in pairs.items() if before != after)
    which, saved, trigger = new.which, new.saved, new.trigger
    if old.how.engine != new.how.engine:
        saved = replace(saved, file_format=old.saved.file_format, is_host_layout=old.saved.is_host_layout)
        trigger = old.trigger
        if trigger.op_debug_mode:
            which = old.which
    when = replace(old.when, iterations=new.when.iterations)
    plan = replace(old, when=when, which=which, operands=new.operands, saved=saved, trigger=trigger, source=new.source)
    return Change(plan, kept)


def _sampling(plan: Plan) -> Sampling | None:
    return None if plan.when.sampler is None else plan.when.sampler.sampling


def _scene(plan: Plan) -> str:
    """Of ACL; "" for an ordinary dump and for triggers that may come and go."""
    exception = "" if plan.trigger.exception == OPERANDS else plan.trigger.exception
    return WATCHER if plan.trigger.is_watcher else exception


log = logging.getLogger("msdump")

ERROR_FILE = "plan.error"
# Time that an editor or a copy has to finish a file that it writes in place.
_PATIENCE_SECONDS = 1.0
_MODE = 0o644
_IDLE = (
    "expected a configuration that dumps something, got one that dumps nothing. "
    "To dump nothing for a while, choose an iteration that does not come."
)


class Reloader:
    """Looks once before each step whether the file of a plan has changed.

    file    as it was read first
    read    the plan of the file as it is now; None where it dumps nothing
    clock   seconds, injected by tests

    A file that cannot be read or does not hold changes nothing. When it has been so for a second, and at the end of the
    session, that is logged once, and written to a file `plan.error` beside it, which is removed when the file is valid
    again.
    """

    def __init__(
        self, file: JsonFile, read: Callable[[], Plan | None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        assert file.given is not None, "a configuration that is no file cannot be read again"
        self._path = file.given
        self._stamp = file.stamp
        self._text = file.text
        self._read = read
        self._clock = clock
        self._error = ""
        self._bad_since = 0.0
        self._is_told = False
        self._kept: set[str] = set()

    def poll(self, plan: Plan) -> Plan | None:
        """The plan that replaces `plan`; None: go on."""
        stamp = stamp_of(self._path)
        if stamp == self._stamp:
            if self._error and not self._is_told and self._clock() - self._bad_since >= _PATIENCE_SECONDS:
                self._tell()
            return None
        self._stamp = stamp
        try:
            new = self._read()
            if new is None:
                raise ConfigError(f"{self._path}: {_IDLE}")
        except (MsdumpError, OSError) as error:
            self._error, self._bad_since, self._is_told = str(error), self._clock(), False
            return None
        self._forget_error()
        if new.source.text == self._text:
            return None
        self._text = new.source.text
        changed = change(plan, new)
        self._tell_kept(changed.kept)
        return changed.plan

    def close(self) -> None:
        """Report an error that is pending when the session ends."""
        if self._error and not self._is_told:
            self._tell()

    @property
    def _error_path(self) -> Path:
        return self._path.with_name(ERROR_FILE)

    @property
    def _first_line(self) -> str:
        return f"msdump: {self._path} is not in force"

    # -- parts ------------------------------------------------------------------------------------

    def _tell_kept(self, keys: tuple[str, ...]) -> None:
        fresh = [key for key in keys if key not in self._kept]
        self._kept.update(fresh)
        if fresh:
            log.warning(
                "%s: %s cannot change while the job runs, and stays as it was. Start the job again to change it.",
                self._path,
                ", ".join(fresh),
            )

    def _tell(self) -> None:
        self._is_told = True
        log.warning("%s: the changed file is invalid, the dump continues as before.\n%s", self._path, self._error)
        text = f"{self._first_line}\n{self._error}\n".encode("utf-8", "backslashreplace")
        try:
            write_file(self._error_path, [text], _MODE, replace=True)
        except (MsdumpError, OSError) as error:
            log.warning("%s: expected to write the error there, got: %s", self._error_path, error)

    def _forget_error(self) -> None:
        """Remove what tells of the error; a file of this name that is not ours stays."""
        had_error, self._error, self._is_told = self._is_told, "", False
        if had_error:
            with contextlib.suppress(OSError, FormatError):
                own = f"{self._first_line}\n".encode("utf-8", "backslashreplace")
                start, _ = read_start(os.fspath(self._error_path), len(own))
                if start == own:
                    os.unlink(self._error_path)
