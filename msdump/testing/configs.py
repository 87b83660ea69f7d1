"""Strategies of MindSpore Dump configurations: right ones, and wrong ones with the line that each must give."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

Config = dict[str, Any]
COMMON, E2E = "common_dump_settings", "e2e_dump_settings"
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
_SAVED_DATA_CHOICES = "saved_data only supports statistic, tensor, or full, but got: {}. " + (
    "Please set saved_data to either statistic, tensor, or full"
)
_CATEGORIES = (
    "max, min, avg, count, negative zero count, positive zero count, nan count, negative inf count, "
    "positive inf count, zero count, md5, l2norm"
)


def iteration_texts() -> st.SearchStrategy[str]:
    """Right values of `iteration`: "all", or numbers and rising ranges with "|" between; pieces may be empty."""
    number = st.integers(0, 40) | st.integers(0, 2**64 - 1)
    piece = st.lists(number, min_size=1, max_size=2).map(lambda ends: "-".join(str(end) for end in sorted(ends)))
    pieces = st.lists(piece | piece | piece | st.just(""), min_size=1, max_size=6).filter(any)
    return st.just("all") | pieces.map("|".join)


def net_names() -> st.SearchStrategy[str]:
    return st.text(_PLAIN, min_size=1, max_size=12)


def kernel_selectors(full_names: Sequence[str] = ()) -> st.SearchStrategy[str]:
    """Elements of `kernels`: full names, parts of op types in any case, expressions that match a whole name.

    full_names: of the operators of a graph; none = made-up ones.
    """
    names = list(full_names) or [
        "Default/network-WithLossCell/_backbone-LeNet5/conv1-Conv2d/Conv2D-op1",
        "Default/network-WithLossCell/_backbone-LeNet5/relu-ReLU/ReLU-op2",
        "Gradients/Default/network-WithLossCell/_backbone-LeNet5/gradConv2D-expand/Conv2DBackpropFilter-op7",
    ]
    return st.sampled_from(names).flatmap(_selectors_of)


def _selectors_of(name: str) -> st.SearchStrategy[str]:
    op_type = name.rpartition("/")[2].rpartition("-")[0] or name
    last = len(op_type) - 1
    parts = st.tuples(st.integers(0, last), st.integers(0, last)).map(lambda cut: op_type[min(cut) : max(cut) + 1])
    op_types = st.builds(lambda part, change: change(part), parts, st.sampled_from([str, str.lower, str.upper]))
    # A part such as "a-op" would be read as a full name; some letters have no upper case of their own.
    op_types = op_types.filter(lambda text: "-op" not in text and text.lower() in op_type.lower())
    expressions = st.integers(0, len(name)).map(lambda end: f"name-regex({re.escape(name[:end])}.*)")
    return st.just(name) | op_types | expressions


@st.composite
def mindspore_configs(
    draw: st.DrawFn,
    path: str | None = None,
    kernels: st.SearchStrategy[str] | None = None,
    is_sync: bool | None = None,
    saved_data: st.SearchStrategy[str] | None = None,
) -> Config:
    """Right configurations, as the values of a JSON file.

    path        where the dump goes; None = made-up absolute paths
    kernels     elements of `kernels`; None = `kernel_selectors()`
    is_sync     None = either
    saved_data  None = "tensor", which every device takes, strict or not
    """
    kernels = kernel_selectors() if kernels is None else kernels
    saved_data = st.just("tensor") if saved_data is None else saved_data
    dump_mode = draw(st.integers(0, 1))
    common: Config = {
        "dump_mode": dump_mode,
        "path": path if path is not None else "/" + draw(st.lists(net_names(), min_size=1, max_size=3).map("/".join)),
        "net_name": draw(net_names()),
        "iteration": draw(iteration_texts()),
        "input_output": draw(st.integers(0, 2)),
        "kernels": draw(st.lists(kernels, min_size=dump_mode, max_size=4, unique=True)),
        "support_device": draw(st.lists(st.integers(0, 7), min_size=1, max_size=8, unique=True)),
    }
    saved = draw(saved_data)
    if saved != "tensor" or draw(st.booleans()):
        common["saved_data"] = saved
    if draw(st.booleans()):
        common["statistic_category"] = draw(st.lists(st.sampled_from(["max", "min", "avg", "l2norm"]), unique=True))
    if draw(st.booleans()):
        common["overflow_number"] = 0
    if draw(st.booleans()) if is_sync is None else is_sync:
        return {COMMON: common, E2E: {"enable": True, "trans_flag": draw(st.booleans())}}
    common["op_debug_mode"] = 0
    common["file_format"] = draw(st.sampled_from(["npy", "bin"] if saved == "tensor" else ["npy"]))
    return {COMMON: common, E2E: {"enable": False, "trans_flag": True}} if draw(st.booleans()) else {COMMON: common}


def mindspore_config_texts() -> st.SearchStrategy[str]:
    """Right configurations as JSON text, with and without blanks."""
    indents = st.sampled_from([None, 1, 4])
    return st.builds(lambda config, indent: json.dumps(config, indent=indent), mindspore_configs(), indents)


# -- wrong ones -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mistake:
    """One thing that can be wrong with a configuration.

    key         what it spoils; mistakes of one key cannot stand in one configuration
    spoil       makes the mistake in place
    first_line  what the error must begin with
    is_missing  the key is gone; that is reported before every wrong value of the section
    is_strict   a mistake only under MSDUMP_STRICT=1
    is_async    a mistake only where the dump is async; needs a configuration without `e2e_dump_settings`
    targets     device targets that see it as a mistake
    """

    key: str
    spoil: Callable[[Config], None]
    first_line: str
    is_missing: bool = False
    is_strict: bool = False
    is_async: bool = False
    targets: tuple[str, ...] = ("CPU", "GPU", "Ascend")


def _sets(section: str, key: str, value: Any) -> Callable[[Config], None]:
    return lambda config: config[section].__setitem__(key, value)


def _drops(section: str, key: str) -> Callable[[Config], None]:
    return lambda config: config[section].pop(key, None)


def _common(key: str, value: Any, first_line: str, **rules: Any) -> Mistake:
    return Mistake(key, _sets(COMMON, key, value), first_line, **rules)


def _e2e(key: str, value: Any, first_line: str) -> Mistake:
    return Mistake(f"{E2E}.{key}", _sets(E2E, key, value), first_line)


def _missing(section: str, key: str) -> Mistake:
    name = key if section == COMMON else f"{section}.{key}"
    return Mistake(name, _drops(section, key), f"Check dump json failed, {key} not found", is_missing=True)


def _unsigned(key: str) -> list[Mistake]:
    line = f"Dump config parse failed, {key} should be unsigned int type"
    values: tuple[Any, ...] = ("0", -1, 1.0, None, True, [0])
    return [_common(key, value, line) for value in values]


def _string(key: str) -> list[Mistake]:
    values: tuple[Any, ...] = (1, None, ["a"])
    return [_common(key, value, f"Dump config parse failed, {key} should be string type") for value in values]


def _array(key: str) -> list[Mistake]:
    values: tuple[Any, ...] = ("a", 0, {})
    return [_common(key, value, f"Dump config parse failed, {key} should be array type") for value in values]


def _e2e_mistakes() -> list[Mistake]:
    boolean = "Dump Json Parse Failed. 'enable' should be boolean type"
    stat = "Dump Json parse failed, 'stat_calc_mode' only supports 'host' or 'device', but got: cpu. "
    precision = "Dump Json parse failed, 'device_stat_precision_mode' only supports 'high' or 'low', but got: mid. "
    sample = "Dump config parse failed, sample_mode should be unsigned int type"
    return [
        _missing(E2E, "enable"),
        _missing(E2E, "trans_flag"),
        _e2e("enable", 1, boolean),
        _e2e("enable", "true", boolean),
        _e2e("trans_flag", None, boolean),
        _e2e("stat_calc_mode", "cpu", f"{stat}Please set 'stat_cal_mode' to 'host' or 'device'"),
        _e2e("device_stat_precision_mode", "mid", f"{precision}Please set 'stat_cal_mode' to 'high' or 'low'"),
        _e2e("sample_mode", 2, "Dump Json Parse Failed. sample_mode should be 0, 1"),
        _e2e("sample_mode", "1", sample),
        _e2e("sample_num", 0, "Dump Json Parse Failed. sample_num should be greater than 0"),
        _e2e("sample_num", "9", sample),
        _e2e("save_kernel_args", "yes", boolean),
    ]


def _missing_mistakes() -> list[Mistake]:
    no_common = Mistake(
        COMMON,
        lambda config: config.pop(COMMON),
        "Check dump json failed, common_dump_settings not found",
        is_missing=True,
    )
    keys = ("dump_mode", "net_name", "iteration", "input_output", "kernels", "support_device")
    return [no_common, *(_missing(COMMON, key) for key in keys)]


def _mode_and_path_mistakes() -> list[Mistake]:
    cell = "Cell dump is only supported in Ascend async dump. Please set dump_mode to 0 or 1."
    empty = "Dump path is empty. Please set it in dump json file or environment variable `MS_DIAGNOSTIC_DATA_PATH`."
    relative = "Dump path only support absolute path and should start with '/'"
    characters = "Dump path only support alphabets, digit or {'-', '_', '/'}, but got:"
    return [
        *_unsigned("dump_mode"),
        _common("dump_mode", 3, "Dump config parse failed, dump_mode should be 0, 1 or 2, but got 3"),
        _common("dump_mode", 2, cell, targets=("CPU", "GPU"), is_strict=True),
        *_string("path"),
        Mistake("path", _drops(COMMON, "path"), empty),
        _common("path", "", empty),
        _common("path", "/dump.d", f"{characters}/dump.d", is_strict=True),
        _common("path", "/my dump", f"{characters}/my dump", is_strict=True),
        _common("path", "/a\0b", f"{characters}/a\0b"),
        _common("path", "dump", relative),
        *_string("net_name"),
        *(
            _common("net_name", name, f"net_name only supports alphabetic, digit, or {{'-', '_'}}, but got: {name}")
            for name in ("", "ResNet 50", "net.1", "a/b", "网络")
        ),
    ]


def _choice_mistakes() -> list[Mistake]:
    never = 'common_dump_settings.iteration: expected "all" or ranges such as "0|5-8", got '
    characters = "iteration only supports digits, {'-', '|'}, or just \"all\" but got: "
    number = "[json.exception.type_error.302] type must be number, but is "
    return [
        *_string("iteration"),
        *(_common("iteration", text, characters + text) for text in ("", "ALL", "0, 1", " 1", "+1", "a", "٣")),
        *(
            _common("iteration", text, f'{never}"{text}". ')
            for text in ("5-2", "3-", "-3", "1-2-3", "-", "|", "0|9-3", str(2**64))
        ),
        *_unsigned("input_output"),
        _common("input_output", 3, "Dump Json Parse Failed. input_output should be 0, 1, 2"),
        *_array("kernels"),
        *_array("support_device"),
        _common("support_device", ["0"], number + "string"),
        _common("support_device", [0, None], number + "null"),
        _common("support_device", [[0]], number + "array"),
    ]


def _async_mistakes() -> list[Mistake]:
    unsigned = "Dump config parse failed, op_debug_mode should be unsigned int type"
    file_format = "Dump Json Parse Failed. 'file_format' should be either 'npy' or 'bin', but got: npz"
    gone = Mistake(
        "op_debug_mode",
        _drops(COMMON, "op_debug_mode"),
        "Check dump json failed, op_debug_mode not found",
        is_async=True,
        targets=("Ascend",),
    )
    rules: dict[str, Any] = {"is_async": True, "targets": ("CPU", "Ascend")}
    return [
        gone,
        _common("op_debug_mode", "3", unsigned, **rules),
        _common("op_debug_mode", 4, "Dump Json Parse Failed. op_debug_mode should be 0, 1, 2, 3", **rules),
        _common("file_format", "npz", file_format, **rules),
        _common("file_format", 1, "Dump config parse failed, file_format should be string type", **rules),
    ]


def _saved_data_mistakes() -> list[Mistake]:
    prefix = "Dump Json parse failed, "
    only = f"{prefix}storing statistic dump is only supported on "

    def bin_statistic(config: Config) -> None:
        config[COMMON].update(saved_data="full", file_format="bin")

    def wrong_category(config: Config) -> None:
        config[COMMON].update(saved_data="statistic", file_format="npy", statistic_category=["max", "mode", "range"])

    category = "The following statistic_category is invalid:mode, range, the valid statistic_category are as follows:"
    no_npy = f"{only}Ascend when file_format is set to 'npy'."
    cpu = f"{only}GPU and Ascend, please set saved_data to tensor or use a GPU or Ascend device"
    return [
        *_string("saved_data"),
        _common("saved_data", "tensors", prefix + _SAVED_DATA_CHOICES.format("tensors")),
        _common("saved_data", "statistic", cpu, is_strict=True, targets=("CPU",)),
        _common("saved_data", "full", f"{only}Ascend asynchronous mode.", is_strict=True, targets=("Ascend",)),
        Mistake("file_format", bin_statistic, no_npy, is_async=True, targets=("CPU", "Ascend")),
        _common("overflow_number", 5, "overflow_number only need to be set when op_debug_mode is 3."),
        *_unsigned("overflow_number"),
        *_unsigned("initial_iteration"),
        Mistake("statistic_category", wrong_category, f"{category}[{_CATEGORIES}]", targets=("GPU",)),
    ]


# In the order of the checks, missing keys of a section before its values.
MISTAKES: tuple[Mistake, ...] = (
    *_e2e_mistakes(),
    *_missing_mistakes(),
    *_mode_and_path_mistakes(),
    *_choice_mistakes(),
    *_async_mistakes(),
    *_saved_data_mistakes(),
)


def mistakes_for(device_target: str = "CPU", is_strict: bool = False) -> list[Mistake]:
    """Mistakes that a run on this device must report."""
    return [mistake for mistake in MISTAKES if is_mistake(mistake, device_target, is_strict)]


def is_mistake(mistake: Mistake, device_target: str, is_strict: bool) -> bool:
    if device_target not in mistake.targets or (mistake.is_strict and not is_strict):
        return False
    if is_strict and mistake.first_line.startswith(f"{COMMON}.iteration"):
        return False  # strict takes ranges that can never match, as MindSpore does
    # Strict knows no async dump on CPU.
    return not (mistake.is_async and is_strict and device_target == "CPU")


@st.composite
def invalid_mindspore_configs(
    draw: st.DrawFn, device_target: str = "CPU", is_strict: bool = False
) -> tuple[Config, str]:
    """(configuration with one mistake, beginning of the error that it must give).

    The beginning is the whole first line where MindSpore has one for the mistake.
    """
    mistake = draw(st.sampled_from(mistakes_for(device_target, is_strict)))
    config = draw(mindspore_configs(path="/dump", is_sync=not mistake.is_async))
    mistake.spoil(config)
    return config, mistake.first_line
