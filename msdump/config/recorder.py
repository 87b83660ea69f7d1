"""Section `recorder_settings` of the MindSpore Dump JSON, which is msdump's own: the flight recorder."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationInfo

from msdump.config.json_file import shown
from msdump.config.plan import TRIGGERS, RecorderPlan
from msdump.config.sections import Boolean, String, Unsigned, parse_size_value, where
from msdump.errors import ConfigError, did_you_mean, refused

RECORDER = "recorder_settings"
_NUMBER = r"[-+]?(?:[0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})(?:[eE][-+]?[0-9]{1,3})?"
_RULE = re.compile(rf"\s*([A-Za-z_]\w{{0,99}})\s*(>=|<=|>|<)\s*({_NUMBER})\s*", re.ASCII)


def _check_ring(value: str, info: ValidationInfo) -> str:
    if value and not value.startswith("/"):
        raise _refusal(info, "an absolute path of a folder, best in tmpfs", value, 'Write for example "/dev/shm".')
    return value


def _parse_on(value: Any, info: ValidationInfo) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)):
        raise _refusal(info, f"a list of triggers, some of {', '.join(TRIGGERS)}", value)
    for name in names:
        if name not in TRIGGERS:
            advice = did_you_mean(str(name), TRIGGERS)
            raise _refusal(info, f"triggers among {', '.join(TRIGGERS)}", name, advice)
    return tuple(dict.fromkeys(names))


def _parse_rules(value: Any, info: ValidationInfo) -> tuple[tuple[str, str, float], ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)):
        raise _refusal(info, 'a list of rules such as "loss > 10"', value)
    matches = [_RULE.fullmatch(text) if isinstance(text, str) else None for text in texts]
    for text, match in zip(texts, matches, strict=True):
        if match is None:
            raise _refusal(info, 'rules of a name, one of > >= < <= and a number, such as "loss > 10"', text)
    return tuple((match[1], match[2], float(match[3])) for match in matches if match is not None)


def _check_positive(value: Any, info: ValidationInfo) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
        raise _refusal(info, "a number above 0", value)
    return float(value)


def _check_count(value: int, info: ValidationInfo) -> int:
    if value == 0:
        raise _refusal(info, "a number from 1 on", value, "Leave the section out where nothing is to be recorded.")
    return value


def _refusal(info: ValidationInfo, expected: str, value: Any, fix: str = "") -> ConfigError:
    return ConfigError(refused("", where(info), expected, shown(value), fix))


class RecorderSettings(BaseModel):
    """Keys of the section; every key has a default."""

    model_config = ConfigDict(frozen=True, extra="ignore", title=RECORDER)

    enable: Boolean = True
    ring: Annotated[String, AfterValidator(_check_ring)] = ""
    steps: Annotated[Unsigned, AfterValidator(_check_count)] = 3
    budget: Annotated[int, BeforeValidator(parse_size_value)] = 8 << 30
    statistics: Unsigned = 200
    on: Annotated[tuple[str, ...], BeforeValidator(_parse_on)] = TRIGGERS
    rules: Annotated[tuple[tuple[str, str, float], ...], BeforeValidator(_parse_rules)] = ()
    spike: Annotated[float, BeforeValidator(_check_positive)] = 8.0
    hang: Annotated[float, BeforeValidator(_check_positive)] = 60.0
    after: Unsigned = 1
    distance: Unsigned = 100
    count: Annotated[Unsigned, AfterValidator(_check_count)] = 10

    def plan(self) -> RecorderPlan | None:
        """None when it is switched off."""
        if not self.enable:
            return None
        return RecorderPlan(**{name: getattr(self, name) for name in RecorderPlan.__dataclass_fields__})
