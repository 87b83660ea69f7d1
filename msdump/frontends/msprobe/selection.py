"""Which records are dumped: `scope`, `list`, and without them the risk level of a function.

Source: mindstudio-probe 26.2, for what a range begins and ends with, and its two lists of functions.
"""

from __future__ import annotations

import re

from msdump.errors import ConfigError
from msdump.frontends.msprobe.config import L0, L1, MIX, Settings
from msdump.frontends.msprobe.function_names import CORE, DISTRIBUTED, MOVING, names_of

_MODULES = "Module.", "Cell."
_API_NAME = re.compile(r"(Distributed|Functional|Torch|Tensor|Aten|VF|NPU)\..*\.\d+\.(forward|backward)")
_MODULE_NAME = re.compile(r"(Module|Cell)\..*\.(forward|backward)\.\d+")
_NUMBER_AND_STAGE = re.compile(r"\.\d+\.(?:forward|backward)$")


class Selection:
    """Asked for each record, in the order of the run; a range is open from its first record to its last.

    Raises: ConfigError for a scope that names no records of the level.
    """

    def __init__(self, settings: Settings) -> None:
        self._names = settings.names
        self._scope = settings.scope
        self._level = settings.level
        self._risk_level = settings.risk_level
        self._is_in_range = False
        self._open_modules: set[str] = set()
        self._check_scope()

    @property
    def is_given(self) -> bool:
        return bool(self._scope or self._names)

    def begin_module(self, name: str) -> None:
        """A module is called, or its backward begins: a range of modules opens, and so does one that `list` names."""
        if self._level == L1:
            return
        if self._scope and name == self._scope[0]:
            self._is_in_range = True
        if any(part in name for part in self._names):
            self._open_modules.add(name)

    def end_module(self, name: str) -> None:
        if self._level == L1:
            return
        if self._scope and name == self._scope[1]:
            self._is_in_range = False
        self._open_modules.discard(name)

    def takes(self, name: str) -> bool:
        """Whether this record is dumped. Asked once for each side of it: the last function of a range shows its
        input alone, as in msprobe."""
        if not self.is_given:
            return self._level == L0 or self._takes_by_risk(name)
        return self._takes_given(name)

    def takes_parameters(self, name: str) -> bool:
        """Whether gradients of the parameters of a module are dumped, by its name without stage."""
        return not self.is_given or self._takes_given(name)

    def _takes_given(self, name: str) -> bool:
        # At level L0 the calls of modules move the ends of a range; a function is its own end.
        if self._scope and self._level != L0 and name == self._scope[0]:
            self._is_in_range = True
        is_taken = False
        if not self._scope or self._is_in_range:
            is_inside = self._level == MIX and bool(self._open_modules)
            is_taken = is_inside or not self._names or any(part in name for part in self._names)
        if self._scope and self._level != L0 and name == self._scope[1]:
            self._is_in_range = False
        return is_taken

    def _takes_by_risk(self, name: str) -> bool:
        if self._risk_level == "ALL" or name.startswith(_MODULES):
            return True
        function = _NUMBER_AND_STAGE.sub("", name).partition(".")[2]
        is_core = function in names_of(CORE) or function in names_of(DISTRIBUTED)
        if self._risk_level == "CORE":
            return is_core
        return is_core or function not in names_of(MOVING)

    def _check_scope(self) -> None:
        if not self._scope:
            return
        if len(self._scope) != 2:
            raise ConfigError(f"scope: expected the first and the last record, got {len(self._scope)} names. Give two.")
        patterns = {L1: (_API_NAME,), L0: (_MODULE_NAME,)}.get(self._level, (_API_NAME, _MODULE_NAME))
        for name in self._scope:
            if not any(pattern.fullmatch(name) for pattern in patterns):
                example = "Module.fc1.Linear.forward.0" if self._level == L0 else "Functional.linear.0.forward"
                raise ConfigError(
                    f"scope: expected names of records of level {self._level}, such as {example}, got {name!r}. "
                    "Take one from a dump.json of this level."
                )
