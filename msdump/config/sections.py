"""The two sections of the MindSpore Dump JSON: every key, what it may hold, and MindSpore's words when it does not.

The order of fields in a section is the order of its checks: a missing key is reported before any wrong value,
and the first wrong value wins.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo

from msdump.config.environment import ACL_DUMP_CONFIG, CONTAINERS, size_of
from msdump.config.json_file import expanded_advice, json_type, shown
from msdump.config.plan import ASCEND, ASYNC, CPU, EXCEPTION_MODE, OVERFLOW_ALL, SYNC
from msdump.config.ranges import MINDSPORE, MINDSPORE_STRICT, NumberRanges, parse_ranges
from msdump.config.sampling import Sampling, parse_sampling
from msdump.config.selectors import parse_selectors
from msdump.errors import ConfigError, did_you_mean, refused
from msdump.statistics import stats

COMMON, E2E = "common_dump_settings", "e2e_dump_settings"
_ABSENT = object()  # a key that is not there, which null is not
DUMP_ALL, DUMP_LISTED, DUMP_MARKED = 0, 1, 2
TENSOR, STATISTIC, FULL = "tensor", "statistic", "full"
_LONGEST_NAME = 255  # of a folder, on every filesystem
STATISTIC_CATEGORIES = tuple(category.name for category in stats.STATISTIC_CATEGORIES)


Section = TypeVar("Section", bound=BaseModel)


@dataclass(frozen=True)
class Profile:
    """The device that a configuration is for, and how to read it."""

    device_target: str = CPU
    is_strict: bool = False
    is_acl_dump: bool = False
    diagnostic_path: str | None = None


@dataclass(frozen=True)
class SectionContext:
    """What the checks of one section need beside the section."""

    profile: Profile
    engine: str = SYNC


def _context(info: ValidationInfo) -> SectionContext:
    return cast(SectionContext, info.context)


# -- types of fields --------------------------------------------------------------------------------


def where(info: ValidationInfo) -> str:
    """JSON path of the field that is being checked."""
    return f"{(info.config or {}).get('title', '')}.{info.field_name}"


def refusal(first_line: str, info: ValidationInfo, expected: str, value: Any, fix: str = "") -> ConfigError:
    """Error for one field: MindSpore's line, then where, what came and how to fix it."""
    return ConfigError(refused(first_line, where(info), expected, shown(value), fix))


def check_unsigned(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        # MindSpore reports both sampling keys under one name.
        name = "sample_mode" if info.field_name == "sample_num" else info.field_name
        fix = "Write the number without quotes." if isinstance(value, str) and value.isdigit() else ""
        first_line = f"Dump config parse failed, {name} should be unsigned int type"
        raise refusal(first_line, info, "a whole number from 0 on", value, fix)
    return value


def check_string(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, str):
        first_line = f"Dump config parse failed, {info.field_name} should be string type"
        raise refusal(first_line, info, "a string", value, "Put it in double quotes.")
    return value


def check_array(value: Any, info: ValidationInfo) -> list[Any]:
    if not isinstance(value, list):
        first_line = f"Dump config parse failed, {info.field_name} should be array type"
        raise refusal(first_line, info, "a list", value, "Put it in square brackets.")
    return value


def _check_boolean(value: Any, info: ValidationInfo) -> Any:
    if not isinstance(value, bool):
        # MindSpore names `enable` whichever switch is wrong.
        first_line = "Dump Json Parse Failed. 'enable' should be boolean type"
        raise refusal(first_line, info, "true or false", value, "Write it without quotes, in lower case.")
    return value


Unsigned = Annotated[int, BeforeValidator(check_unsigned)]
String = Annotated[str, BeforeValidator(check_string)]
Boolean = Annotated[bool, BeforeValidator(_check_boolean)]


def validate_section(model: type[Section], section: object, context: object) -> Section:
    """A section as its model.

    Edges:  a value that is no object has no keys, so its first required key is missing.
    Raises: ConfigError: the first missing key in the order of the fields, else the first wrong value.
    """
    values: dict[str, Any] = dict(section) if isinstance(section, dict) else {}
    for key, field in model.model_fields.items():
        if key not in values:
            if field.is_required():
                raise missing_key(key, str(model.model_config.get("title")), section)
            if field.validate_default:
                # pydantic 2.4 forgets every problem but this one when it checks a default itself.
                values[key] = field.default
    try:
        return model.model_validate(values, context=context)
    except ValidationError as error:
        problems = error.errors(include_url=False)
    # Raised outside of `except`: pydantic's own account would only repeat this one in other words.
    raise problems[0]["ctx"]["error"]


def missing_key(key: str, where: str, section: object) -> ConfigError:
    """Error for a key that is not there, with the misspelt one when there is one."""
    if not isinstance(section, Mapping):
        fix = f"It is no object; write {{...}} with the key {key} in it."
    else:
        fix = did_you_mean(key, section) or "Add it."
        if fix != "Add it.":
            fix = f"{fix[:-1].replace('Did you mean', 'Is it meant by')}?"
    return ConfigError(f"Check dump json failed, {key} not found\n{where}: expected a key {key}. {fix}")


def unknown_keys(model: type[BaseModel], section: object) -> list[str]:
    """One sentence for each key of a section that has no effect."""
    if not isinstance(section, dict):
        return []
    title, keys = str(model.model_config.get("title")), list(model.model_fields)
    return [
        f"{title}.{key}: unknown key, ignored. {did_you_mean(key, keys)}".rstrip()
        for key in section
        if key not in model.model_fields
    ]


# -- e2e_dump_settings ------------------------------------------------------------------------------


def _one_of(words: tuple[str, str], expected: str) -> Callable[[str, ValidationInfo], str]:
    """Check of the two later switches, whose messages differ in the words only (and keep their misprint)."""
    either = " or ".join(f"'{word}'" for word in words)

    def check(value: str, info: ValidationInfo) -> str:
        if value not in words:
            raise refusal(
                f"Dump Json parse failed, '{info.field_name}' only supports {either}, but got: {value}. "
                f"Please set 'stat_cal_mode' to {either}",
                info,
                expected,
                value,
                did_you_mean(value, words),
            )
        return value

    return check


def _check_sample_mode(value: int, info: ValidationInfo) -> int:
    if value > 1:
        raise refusal("Dump Json Parse Failed. sample_mode should be 0, 1", info, "0 or 1", value)
    return value


def _check_sample_num(value: int, info: ValidationInfo) -> int:
    if value == 0:
        first_line = "Dump Json Parse Failed. sample_num should be greater than 0"
        raise refusal(first_line, info, "a number from 1 on", value)
    return value


class E2eDumpSettings(BaseModel):
    """Section `e2e_dump_settings`. The keys after `trans_flag` are later than the guide that msdump follows."""

    model_config = ConfigDict(frozen=True, extra="ignore", title=E2E)

    enable: Boolean
    trans_flag: Boolean
    stat_calc_mode: Annotated[String, AfterValidator(_one_of(("host", "device"), '"host" or "device"'))] = "host"
    device_stat_precision_mode: Annotated[String, AfterValidator(_one_of(("high", "low"), '"high" or "low"'))] = "high"
    sample_mode: Annotated[Unsigned, AfterValidator(_check_sample_mode)] = 0
    sample_num: Annotated[Unsigned, AfterValidator(_check_sample_num)] = 100
    save_kernel_args: Boolean = False


# -- common_dump_settings ---------------------------------------------------------------------------


def _check_dump_mode(value: int, info: ValidationInfo) -> int:
    if value > DUMP_MARKED:
        first_line = f"Dump config parse failed, dump_mode should be 0, 1 or 2, but got {value}"
        raise refusal(first_line, info, "0 (all), 1 (those in kernels) or 2 (those marked by set_dump)", value)
    context = _context(info)
    is_native = context.profile.device_target == ASCEND and context.engine == ASYNC
    if value == DUMP_MARKED and context.profile.is_strict and not is_native:
        first_line = "Cell dump is only supported in Ascend async dump. Please set dump_mode to 0 or 1."
        fix = "List the operators in kernels, or unset MSDUMP_STRICT to dump marked cells with any engine."
        raise refusal(first_line, info, f"0 or 1 with device target {context.profile.device_target}", value, fix)
    return value


def _check_path(value: str, info: ValidationInfo) -> str:
    profile = _context(info).profile
    if not value and profile.diagnostic_path:
        value = f"{profile.diagnostic_path}/debug_dump"
    if not value:
        raise refusal(
            "Dump path is empty. Please set it in dump json file or environment variable `MS_DIAGNOSTIC_DATA_PATH`.",
            info,
            "an absolute path",
            value,
            'Add "path": "/where/the/dump/goes".',
        )
    if not _is_path_text(value, profile.is_strict):
        first_line = f"Dump path only support alphabets, digit or {{'-', '_', '/'}}, but got:{value}"
        fix = "Unset MSDUMP_STRICT to take any path." if profile.is_strict else "No file name can hold this."
        raise refusal(first_line, info, "a path of letters, digits, -, _ and /", value, fix)
    if not value.startswith("/"):
        raise refusal(
            "Dump path only support absolute path and should start with '/'",
            info,
            "an absolute path",
            value,
            _absolute_path_advice(value),
        )
    return value


def _absolute_path_advice(path: str) -> str:
    return expanded_advice(path) or f'Write "{os.path.abspath(path)}" if it is meant from the current directory.'


def _is_path_text(path: str, is_strict: bool) -> bool:
    if is_strict:
        return re.fullmatch(r"[A-Za-z0-9_/-]+", path) is not None
    try:
        return b"\0" not in os.fsencode(path)
    except UnicodeEncodeError:
        return False


def _check_net_name(value: str, info: ValidationInfo) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        first_line = f"net_name only supports alphabetic, digit, or {{'-', '_'}}, but got: {value}"
        proposal = re.sub(r"[^A-Za-z0-9_-]+", "_", value).strip("_") or "Net"
        raise refusal(first_line, info, "letters, digits, - and _", value, f'Write for example "{proposal}".')
    if len(value) > _LONGEST_NAME:
        raise ConfigError(
            f"{where(info)}: expected at most {_LONGEST_NAME} characters, as it names a folder, got {len(value)}. "
            "Shorten it."
        )
    return value


def _check_input_output(value: int, info: ValidationInfo) -> int:
    if value > 2:
        first_line = "Dump Json Parse Failed. input_output should be 0, 1, 2"
        raise refusal(first_line, info, "0 (inputs and outputs), 1 (inputs) or 2 (outputs)", value)
    return value


def _parse_iteration(value: str, info: ValidationInfo) -> NumberRanges:
    return parse_ranges(value, MINDSPORE_STRICT if _context(info).profile.is_strict else MINDSPORE)


def _parse_kernels(value: Any, info: ValidationInfo) -> tuple[str, ...]:
    """Elements as text; what is no string stands for its JSON text, as for MindSpore."""
    elements = check_array(value, info)
    texts = tuple(element if isinstance(element, str) else shown(element) for element in elements)
    if info.data.get("dump_mode") == DUMP_LISTED:
        parse_selectors(texts)
    return texts


def _parse_support_device(value: Any, info: ValidationInfo) -> tuple[int, ...]:
    elements = check_array(value, info)
    for index, element in enumerate(elements):
        if json_type(element) != "number":
            raise ConfigError(
                f"[json.exception.type_error.302] type must be number, but is {json_type(element)}\n"
                f"{where(info)}[{index}]: expected a device id such as 0, got {shown(element)}."
            )
    return tuple(int(element) for element in elements)


_EXCEPTION_ADVICE = (
    f"4, the exception dump, goes through ACL or is synchronous: let {ACL_DUMP_CONFIG} name this file too, or set "
    f"{E2E}.enable to true. 0 is the ordinary dump."
)


def _parse_op_debug_mode(value: Any, info: ValidationInfo) -> int:
    """Read for async only; for sync every value passes, and one that is no number counts as 0."""
    context = _context(info)
    if context.engine == SYNC:
        return value if isinstance(value, int) and value >= 0 else 0
    if value is _ABSENT:
        if context.profile.device_target == ASCEND:
            raise missing_key("op_debug_mode", COMMON, {})
        return 0
    mode: int = check_unsigned(value, info)
    last = 4 if context.profile.is_acl_dump else OVERFLOW_ALL
    if mode > last:
        choices = ", ".join(map(str, range(last + 1)))
        first_line = f"Dump Json Parse Failed. op_debug_mode should be {choices}"
        fix = _EXCEPTION_ADVICE if mode == EXCEPTION_MODE else "0 is the ordinary dump."
        raise refusal(first_line, info, f"one of {choices}", value, fix)
    return mode


def _parse_file_format(value: Any, info: ValidationInfo) -> str:
    """Read for async only; sync always writes npy."""
    if _context(info).engine == SYNC:
        return "npy"
    file_format: str = check_string(value, info)
    if file_format not in ("npy", "bin"):
        first_line = f"Dump Json Parse Failed. 'file_format' should be either 'npy' or 'bin', but got: {file_format}"
        raise refusal(first_line, info, '"npy" or "bin"', value, did_you_mean(file_format, ("npy", "bin")))
    return file_format


def _check_saved_data(value: str, info: ValidationInfo) -> str:
    choices = (STATISTIC, TENSOR, FULL)
    prefix = "Dump Json parse failed, "
    if value not in choices:
        first_line = (
            f"{prefix}saved_data only supports statistic, tensor, or full, but got: {value}. "
            f"Please set saved_data to either statistic, tensor, or full"
        )
        raise refusal(first_line, info, '"tensor", "statistic" or "full"', value, did_you_mean(value, choices))
    if value == TENSOR:
        return value
    context = _context(info)
    target, is_strict = context.profile.device_target, context.profile.is_strict
    prefix += "storing statistic dump is only supported on "
    if is_strict and target == CPU:
        first_line = f"{prefix}GPU and Ascend, please set saved_data to tensor or use a GPU or Ascend device"
        raise refusal(first_line, info, '"tensor" on CPU', value, "Unset MSDUMP_STRICT to get statistics on CPU.")
    if is_strict and target == ASCEND and context.engine == SYNC:
        first_line = f"{prefix}Ascend asynchronous mode."
        raise refusal(first_line, info, '"tensor" in sync dump', value, f"Set {E2E}.enable to false.")
    if context.engine == ASYNC and info.data.get("file_format", "npy") != "npy":
        first_line = f"{prefix}Ascend when file_format is set to 'npy'."
        fix = f'Set {COMMON}.file_format to "npy", or {E2E}.enable to true for a sync dump.'
        raise refusal(first_line, info, '"tensor" with file_format "bin"', value, fix)
    return value


def _parse_statistic_category(value: Any, info: ValidationInfo) -> tuple[str, ...] | None:
    """Columns of statistic.csv; it has no effect when there are no statistics."""
    if info.data.get("saved_data", TENSOR) == TENSOR:
        return None
    elements = check_array(value, info)
    for index, element in enumerate(elements):
        if not isinstance(element, str):
            raise ConfigError(
                f"[json.exception.type_error.302] type must be string, but is {json_type(element)}\n"
                f"{where(info)}[{index}]: expected the name of a statistic, got {shown(element)}."
            )
    wrong = [element for element in elements if element not in STATISTIC_CATEGORIES]
    if wrong:
        first_line = (
            f"The following statistic_category is invalid:{''.join(f'{name}, ' for name in wrong)}"
            f"the valid statistic_category are as follows:[{', '.join(STATISTIC_CATEGORIES)}]"
        )
        raise refusal(first_line, info, "names from that list", wrong, did_you_mean(wrong[0], STATISTIC_CATEGORIES))
    return tuple(dict.fromkeys(elements))


def _check_overflow_number(value: int, info: ValidationInfo) -> int:
    if value and info.data.get("op_debug_mode", OVERFLOW_ALL) != OVERFLOW_ALL:
        first_line = "overflow_number only need to be set when op_debug_mode is 3."
        raise refusal(first_line, info, "no such key or 0", value, "Set op_debug_mode to 3, or take the key out.")
    return value


def _check_initial_iteration(value: int, info: ValidationInfo) -> int:
    iterations: NumberRanges | None = info.data.get("iteration")
    is_reached = iterations is None or any(last >= value for _, last in iterations.ranges)
    if not is_reached and not _context(info).profile.is_strict:
        raise ConfigError(
            f"{where(info)}: expected a number that {COMMON}.iteration reaches, got {value}. Counting starts there, "
            f"so no iteration would be dumped. Raise the numbers of iteration or lower this one."
        )
    return value


def _check_container(value: str, info: ValidationInfo) -> str:
    if value not in CONTAINERS:
        raise refusal(
            f"Dump Json Parse Failed. container should be one of {', '.join(CONTAINERS)}",
            info,
            " or ".join(f'"{word}"' for word in CONTAINERS),
            value,
            did_you_mean(value, CONTAINERS),
        )
    return value


def _parse_sampling(value: object, info: ValidationInfo) -> Sampling:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    text = str(value) if is_number or isinstance(value, str) else repr(value)
    return parse_sampling(text, where(info))


def parse_size_value(value: Any, info: ValidationInfo) -> int:
    """Bytes of a number or a text such as "8G".   Raises: ConfigError."""
    size = value if isinstance(value, int) and not isinstance(value, bool) else size_of(str(value))
    if size is None or size <= 0:
        raise ConfigError(
            refused("", where(info), 'a size such as "8G", "512M" or a number of bytes', shown(value), "")
        )
    return size


class CommonDumpSettings(BaseModel):
    """Section `common_dump_settings`. The keys after `saved_data` are later than the guide that msdump follows;
    `container`, `sampling` and `disk_budget` are msdump's own.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", title=COMMON)

    dump_mode: Annotated[Unsigned, AfterValidator(_check_dump_mode)]
    path: Annotated[String, AfterValidator(_check_path)] = Field(default="", validate_default=True)
    net_name: Annotated[String, AfterValidator(_check_net_name)]
    iteration: Annotated[NumberRanges, BeforeValidator(_parse_iteration), BeforeValidator(check_string)]
    input_output: Annotated[Unsigned, AfterValidator(_check_input_output)]
    kernels: Annotated[tuple[str, ...], BeforeValidator(_parse_kernels)]
    support_device: Annotated[tuple[int, ...], BeforeValidator(_parse_support_device)]
    op_debug_mode: Annotated[int, BeforeValidator(_parse_op_debug_mode)] = Field(default=_ABSENT, validate_default=True)
    file_format: Annotated[str, BeforeValidator(_parse_file_format)] = Field(default="bin", validate_default=True)
    saved_data: Annotated[String, AfterValidator(_check_saved_data)] = TENSOR
    overflow_number: Annotated[Unsigned, AfterValidator(_check_overflow_number)] = 0
    initial_iteration: Annotated[Unsigned, AfterValidator(_check_initial_iteration)] = 0
    statistic_category: Annotated[tuple[str, ...] | None, BeforeValidator(_parse_statistic_category)] = None
    container: Annotated[String, AfterValidator(_check_container)] = ""
    sampling: Annotated[Sampling | None, BeforeValidator(_parse_sampling)] = None
    disk_budget: Annotated[int | None, BeforeValidator(parse_size_value)] = None
