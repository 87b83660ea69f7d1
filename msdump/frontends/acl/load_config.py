"""Config handles: how a model is to be loaded, option by option, and `acl.mdl.load_with_config`."""

from __future__ import annotations

from dataclasses import dataclass, field

from msdump.frontends.acl import codes, const
from msdump.frontends.acl.calls import CallError, as_int, as_text, bad_argument, returns_code, returns_value
from msdump.frontends.acl.models import load
from msdump.frontends.acl.process import process

_PRIORITIES = range(8)
_FROM_FILE = (const.ACL_MDL_LOAD_FROM_FILE, const.ACL_MDL_LOAD_FROM_FILE_WITH_MEM)
_FROM_MEM = (const.ACL_MDL_LOAD_FROM_MEM, const.ACL_MDL_LOAD_FROM_MEM_WITH_MEM)
_WITH_QUEUES = (const.ACL_MDL_LOAD_FROM_FILE_WITH_Q, const.ACL_MDL_LOAD_FROM_MEM_WITH_Q)
_KNOWN = range(const.ACL_MDL_WORKSPACE_MEM_OPTIMIZE + 1)


@dataclass(slots=True)
class ConfigHandle:
    """Options that a script has set, by their numbers of aclmdlConfigAttr."""

    options: dict[int, int | str] = field(default_factory=dict)


def create_config_handle() -> int:
    """`handle = acl.mdl.create_config_handle()`."""
    return process.handles.add(ConfigHandle())


@returns_code("aclmdlDestroyConfigHandle")
def destroy_config_handle(config_handle: int) -> None:
    process.handles.remove(as_int(config_handle, "config_handle"), ConfigHandle, "config_handle")


@returns_code("aclmdlSetConfigOpt")
def set_config_opt(config_handle: int, attr: int, attr_value: int | str) -> None:
    """Set an option: `ret = acl.mdl.set_config_opt(handle, acl.const.ACL_MDL_PATH_PTR, "net.onnx")`.

    attr_value   the path as a str, everything else as an int
    """
    held = process.handles.find(as_int(config_handle, "config_handle"), ConfigHandle, "config_handle")
    number = as_int(attr, "attr")
    if number not in _KNOWN:
        raise bad_argument(f"attr: expected a number of aclmdlConfigAttr up to {_KNOWN[-1]}, got {number}")
    value = as_text(attr_value, "attr_value") if number == const.ACL_MDL_PATH_PTR else as_int(attr_value, "attr_value")
    if number == const.ACL_MDL_PRIORITY_INT32 and value not in _PRIORITIES:
        raise bad_argument(f"attr_value: expected a priority from 0 to 7, got {value}")
    held.options[number] = value


@returns_value("aclmdlLoadWithConfig", 0)
def load_with_config(config_handle: int) -> int:
    """`model_id, ret = acl.mdl.load_with_config(handle)`.

    Memory for weights and work is the script's and is left alone; priorities change nothing.
    Returns: 100000 without a load type, or without what the type needs; 200006 for queues.
    """
    held = process.handles.find(as_int(config_handle, "config_handle"), ConfigHandle, "config_handle")
    kind = _option(held, "ACL_MDL_LOAD_TYPE_SIZET")
    if kind in _WITH_QUEUES:
        raise CallError(codes.FEATURE_UNSUPPORTED, "config_handle: expected a load type without queues of a device")
    if kind in _FROM_FILE:
        return load(str(_option(held, "ACL_MDL_PATH_PTR")), "aclmdlLoadWithConfig")
    if kind not in _FROM_MEM:
        raise bad_argument(f"config_handle: expected a load type from 1 to 6, got {kind}")
    address, size = _option(held, "ACL_MDL_MEM_ADDR_PTR"), _option(held, "ACL_MDL_MEM_SIZET")
    data = process.memory.array(as_int(address, "model"), as_int(size, "model_size"), "model")
    return load(data.tobytes(), "aclmdlLoadWithConfig")


def _option(held: ConfigHandle, name: str) -> int | str:
    value = held.options.get(getattr(const, name))
    if value is None:
        raise bad_argument(f"config_handle: expected the option {name}, got none. Call acl.mdl.set_config_opt for it")
    return value
