"""A branch of the CompilerConfig tree: it has the names that it has, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msdump.errors import ConfigError, did_you_mean
from msdump.frontends.torchair.option_values import OptionValue, PathValue, RawOption


class OptionGroup:
    """Options and further groups under fixed names.

    `group.name = value` and `group.name.value = value` both set an option. Reading gives the option itself; paths and
    functions read as what they hold.
    """

    # Names whose attributes read as the value.   Source: TorchAir, `data_dump.filter` and the `path` properties.
    _plain: frozenset[str] = frozenset()
    # Whether names that begin with `_` may be set at will: TorchAir's own switches for itself.
    _is_open: bool = False
    # Name of TorchAir's class where it is another than ours: its error text begins with it.
    _original_name: str = ""

    def __init__(self, **members: OptionValue | OptionGroup) -> None:
        object.__setattr__(self, "_members", members)
        self._name_members("config")

    def _name_members(self, where: str) -> None:
        object.__setattr__(self, "_where", where)
        for name, member in self._members.items():
            if isinstance(member, OptionGroup):
                member._name_members(f"{where}.{name}")
            else:
                member.where = f"{where}.{name}"

    def __getattr__(self, name: str) -> Any:
        members: dict[str, Any] = self.__dict__.get("_members", {})
        if name not in members:
            raise AttributeError(
                f"{self.__dict__.get('_where', 'config')}: expected one of {sorted(members)}, got {name!r}. "
                f"{did_you_mean(name, members)}".rstrip()
            )
        member = members[name]
        if name not in self._plain:
            return member
        return member.value if member.raw is not None or not isinstance(member, PathValue) else "."

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._members and not (self._is_open and name.startswith("_")):
            owner = self._original_name or type(self).__name__
            raise ConfigError(
                f"{owner} has no option {name}, all options {list(self._members)}\n"
                f"{self._where}: expected one of these, got {name!r}. {did_you_mean(name, self._members)}".rstrip()
            )
        member = self._members.get(name)
        if isinstance(member, OptionGroup):
            raise ConfigError(
                f"{self._where}.{name}: expected one of its options to be set, got {value!r} for all of them. "
                f"They are {sorted(member._members)}."
            )
        if member is None:
            member = self._members[name] = RawOption(None)
            member.where = f"{self._where}.{name}"
        member.value = value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._members})

    def options(self) -> Iterator[OptionValue]:
        """Every option below, in the order of the tree."""
        for member in self._members.values():
            if isinstance(member, OptionGroup):
                yield from member.options()
            else:
                yield member
